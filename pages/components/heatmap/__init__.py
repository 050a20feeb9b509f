"""The memory heat map on screen: a canvas with hover, click and keyboard."""

from pages.components.heatmap.component import heatmap

__all__ = ["heatmap"]
