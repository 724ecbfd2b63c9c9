"""What a service's metrics show, as numbers by name and labels."""

from prometheus_client.parser import text_string_to_metric_families

from sgfusion.wire.metrics import Metrics


def shown(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Every sample of a scrape now: by its name and `label=value` of each label, in alphabetical order."""
    metrics.look()
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        (sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }
