"""Live figures: Bokeh models whose callbacks are JavaScript, so that no kernel stands behind them.

One definition runs on the website, in Colab and in JupyterLab. The website serves BokehJS itself;
a notebook takes it from Bokeh's own host.
"""

from attnbook.live.attention import Attention, attention_browser
from attnbook.live.heads import kernel_heads
from attnbook.live.in_context import in_context_regression
from attnbook.live.page import LiveFigure
from attnbook.live.plane import query_and_keys
from attnbook.live.points import self_attention_points
from attnbook.live.regression import kernel_regression
from attnbook.live.stream import Stream, residual_stream
from attnbook.live.translation import translation_attention

__all__ = [
    "Attention",
    "LiveFigure",
    "Stream",
    "attention_browser",
    "in_context_regression",
    "kernel_heads",
    "kernel_regression",
    "query_and_keys",
    "residual_stream",
    "self_attention_points",
    "translation_attention",
]
