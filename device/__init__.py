"""The device tier: data, private histograms, gradients on requested weights, evaluation. The only tier with torch."""
