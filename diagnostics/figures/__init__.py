"""Pure functions: tables in, Plotly figures out; the same for pages, notebooks and reports."""
