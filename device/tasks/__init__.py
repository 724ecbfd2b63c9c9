"""Tasks: model, loss, metric, label bins and public scaling constants, one file a task."""
