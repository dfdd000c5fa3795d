"""Live figures: Bokeh models whose callbacks are JavaScript, so that no kernel stands behind them.

One definition runs on the website, in Colab and in JupyterLab. The website serves BokehJS itself;
a notebook takes it from Bokeh's own host.
"""

from attnbook.live.attention_browser import Attention, attention_browser
from attnbook.live.estimators import estimators
from attnbook.live.figure import LiveFigure
from attnbook.live.in_context_regression import in_context_regression
from attnbook.live.kernel_heads import kernel_heads
from attnbook.live.kernel_regression import kernel_regression
from attnbook.live.model_heads import model_heads
from attnbook.live.parts import parts
from attnbook.live.query_and_keys import query_and_keys
from attnbook.live.residual_stream import Stream, residual_stream
from attnbook.live.ring import ring
from attnbook.live.self_attention import self_attention_points
from attnbook.live.text_writer import text_writer
from attnbook.live.translation_attention import translation_attention
from attnbook.live.weights import Sentence

__all__ = [
    "Attention",
    "LiveFigure",
    "Sentence",
    "Stream",
    "attention_browser",
    "estimators",
    "in_context_regression",
    "kernel_heads",
    "kernel_regression",
    "model_heads",
    "parts",
    "query_and_keys",
    "residual_stream",
    "ring",
    "self_attention_points",
    "text_writer",
    "translation_attention",
]
