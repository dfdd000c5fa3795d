"""Live figures: Bokeh models whose callbacks are JavaScript, so that no kernel stands behind them.

One definition runs on the website, in Colab and in JupyterLab. The website serves BokehJS itself;
a notebook takes it from Bokeh's own host.
"""

from attnbook.course.live.ask_model import ask_model
from attnbook.course.live.attention_browser import Attention, attention_browser
from attnbook.course.live.bandwidth_descent import bandwidth_descent
from attnbook.course.live.estimators import estimators
from attnbook.course.live.figure import LiveFigure
from attnbook.course.live.in_context_regression import in_context_regression
from attnbook.course.live.kernel_heads import kernel_heads
from attnbook.course.live.kernel_regression import kernel_regression
from attnbook.course.live.model_heads import model_heads
from attnbook.course.live.parts import parts
from attnbook.course.live.planner import planner
from attnbook.course.live.query_and_keys import query_and_keys
from attnbook.course.live.regressor_training import regressor_training
from attnbook.course.live.residual_stream import Stream, residual_stream
from attnbook.course.live.ring import ring
from attnbook.course.live.self_attention import self_attention_points
from attnbook.course.live.text_writer import text_writer
from attnbook.course.live.translation_attention import translation_attention
from attnbook.course.live.weights import Sentence

__all__ = [
    "Attention",
    "LiveFigure",
    "Sentence",
    "Stream",
    "ask_model",
    "attention_browser",
    "bandwidth_descent",
    "estimators",
    "in_context_regression",
    "kernel_heads",
    "kernel_regression",
    "model_heads",
    "parts",
    "planner",
    "query_and_keys",
    "regressor_training",
    "residual_stream",
    "ring",
    "self_attention_points",
    "text_writer",
    "translation_attention",
]
