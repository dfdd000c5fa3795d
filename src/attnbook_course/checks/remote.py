"""A reader's function in another process: a check asks it as it asks one of its own process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
Ask = Callable[Concatenate[Callable[..., Any], Arguments], Answer]


class Remote(ABC):
    """Stands for a function in another process: see attnbook_course.checks.grading."""

    @abstractmethod
    def ask(self, how: str, arguments: tuple[Any, ...]) -> Any:
        """What course.checks.call's function of this name answers, there, for these arguments."""

    @abstractmethod
    def source(self) -> str:
        """The function's source; OSError where it cannot be read."""

    def __call__(self, *arguments: Any) -> Any:
        """No check calls a function directly: its answer may be another library's.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            "a function in another process is asked by attnbook_course.checks.call alone"
        )


def asked_where_it_is(local: Ask[Arguments, Answer]) -> Ask[Arguments, Answer]:
    """The same for a function of this process, and for a Remote there."""

    @wraps(local)
    def asked(
        function: Callable[..., Any], /, *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Answer:
        if isinstance(function, Remote):
            answer: Answer = function.ask(local.__name__, arguments)
            return answer
        return local(function, *arguments, **named)

    vars(asked).pop("__wrapped__")  # by which a module's checks are told from its other functions
    return asked
