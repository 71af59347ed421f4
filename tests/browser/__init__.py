"""The web console in a real browser, before a real embedded cluster with real jobs."""
