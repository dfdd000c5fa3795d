"""Live figures: Bokeh models whose callbacks are JavaScript, so that no kernel stands behind them.

One definition runs on the website, in Colab and in JupyterLab. The website serves BokehJS itself;
a notebook takes it from Bokeh's own host. What a page computes stands in pure functions, one file
of `static` for each subject, which the tests run in Node against Python's arrays.
"""

from attnbook_course.live.ask_model import ask_model
from attnbook_course.live.attention_browser import Attention, attention_browser
from attnbook_course.live.bandwidth_descent import bandwidth_descent
from attnbook_course.live.figure import LiveFigure
from attnbook_course.live.kernel_regression import kernel_regression
from attnbook_course.live.parts import parts
from attnbook_course.live.query_and_keys import query_and_keys
from attnbook_course.live.residual_stream import Stream, residual_stream
from attnbook_course.live.ring import ring
from attnbook_course.live.self_attention import self_attention_points
from attnbook_course.live.text_writer import text_writer

__all__ = [
    "Attention",
    "LiveFigure",
    "Stream",
    "ask_model",
    "attention_browser",
    "bandwidth_descent",
    "kernel_regression",
    "parts",
    "query_and_keys",
    "residual_stream",
    "ring",
    "self_attention_points",
    "text_writer",
]
