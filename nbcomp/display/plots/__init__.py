"""Plots of what was measured: by hand where every cell shows them, by matplotlib on request."""
