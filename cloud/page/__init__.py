"""The page: a run as people see it in a browser, live from the cloud or from a results folder. Read-only."""
