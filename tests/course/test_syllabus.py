"""The syllabus: each session on a day of class, each homework due, the calendar read back."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

import pytest
from icalendar import Calendar
from make_syllabus import WEEK, days_of, main, span, written
from slides.deck import COURSE

START = date(2027, 1, 11)  # a Monday
WORDS = ["--start", "2027-01-11", "--days", "Mon", "Thu"]


def test_sessions_are_on_days_of_class_in_order():
    free = [span("2027-02-15"), span("2027-03-01/2027-03-05")]
    days = days_of(START, ["Thu", "Mon"], free, 18)
    assert days[:3] == [date(2027, 1, 11), date(2027, 1, 14), date(2027, 1, 18)]
    assert days == sorted(set(days)) and len(days) == 18
    assert {WEEK[day.weekday()] for day in days} == {"Mon", "Thu"}
    all_days = {START + timedelta(days=n) for n in range((days[-1] - START).days + 1)}
    class_days = {day for day in all_days if WEEK[day.weekday()] in ("Mon", "Thu")}
    assert class_days - set(days) == {date(2027, 2, 15), date(2027, 3, 1), date(2027, 3, 4)}


@pytest.mark.parametrize(
    ("days", "free", "says"),
    [
        ([], [], r"days: got none, expected some of Mon"),
        (["Mon"], ["2027-01-12"], r"free: got 2027-01-12, when the class would not meet"),
        (["Mon"], ["2026-12-28"], r"free: got 2026-12-28, when"),
        (["Mon"], ["soon"], r"Invalid isoformat string: 'soon'"),
    ],
)
def test_days_that_cannot_be_are_named(days, free, says):
    with pytest.raises(ValueError, match=says):
        days_of(START, days, [span(word) for word in free], 3)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Calendar]:
    target = tmp_path_factory.mktemp("syllabus")
    assert main([*WORDS, "--time", "10:15", "--due", "10"], target) == 0
    calendar = Calendar.from_ical((target / "syllabus.ics").read_bytes())
    return (target / "syllabus.md").read_text("utf-8"), calendar


def test_the_syllabus_has_each_lecture_with_its_day_reading_and_homework(made):
    text, _ = made
    days = days_of(START, ["Mon", "Thu"], [], COURSE)
    parts = re.split(r"^### ", text, flags=re.M)[1:]
    assert len(parts) == COURSE == 18
    for number, (day, part) in enumerate(zip(days, parts, strict=True), 1):
        lecture = f"{(number + 1) // 2}{'ab'[(number + 1) % 2]}"
        assert part.startswith(f"{number}. {written(day)}: {lecture} ")
        assert "*Read after it:* " in part and "*You can then:* " in part
        assert re.search(r"\*Exercises, \d+ minutes:\* (\d+\.|Build )\d+ ", part)
        given = re.findall(r"\*\*Homework:\*\* Homework (\d+): .+, due (.+)", part)
        expected = [(lecture[0], written(day + timedelta(days=10)))] if lecture[1] == "b" else []
        assert given == expected
    assert not re.search(r"\{\w+(:\w+)?\}`|</?\w+", text)  # nothing that only the book can show


def test_the_calendar_says_the_same(made):
    _, calendar = made
    events = calendar.walk("VEVENT")
    assert len({str(one["uid"]) for one in events}) == len(events)
    sessions = [one for one in events if str(one["uid"]).startswith("session-")]
    days = days_of(START, ["Mon", "Thu"], [], COURSE)
    assert [one.decoded("dtstart") for one in sessions] == [
        datetime(day.year, day.month, day.day, 10, 15) for day in days
    ]
    lengths = {one.decoded("dtend") - one.decoded("dtstart") for one in sessions}
    assert lengths == {timedelta(minutes=50)}
    dues = {str(one["summary"]): one.decoded("dtstart") for one in events if one not in sessions}
    first = next(day for name, day in dues.items() if name.startswith("Due: Homework 1:"))
    assert first == days[1] + timedelta(days=10) and len(dues) == 9


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--sessions", "10"], "sessions: got 10, expected one of 18, 9, 12, 6"),
        (["--due", "0"], "due: got 0, expected 1 day or more"),
        (["--free", "2027-01-12"], "free: got 2027-01-12, when the class would not meet anyway"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_written(words, says, tmp_path, capsys):
    assert main([*WORDS, *words], tmp_path) == 1
    assert capsys.readouterr().err == says + "\n"
    assert list(tmp_path.iterdir()) == []
