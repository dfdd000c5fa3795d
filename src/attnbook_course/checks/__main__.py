"""Grade a class: python -m attnbook_course.checks grade --help."""

from __future__ import annotations

import sys


def main(arguments: list[str]) -> int:
    """The command; 2 if nothing can be graded."""
    if arguments[:1] != ["grade"]:
        print("usage: python -m attnbook_course.checks grade --help")
        return 2
    from attnbook_course.checks.grading.command import main as grade

    return grade(arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
