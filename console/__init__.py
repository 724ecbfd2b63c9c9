"""The `sgfusion` command: tables, figures, and what a person starts by hand."""
