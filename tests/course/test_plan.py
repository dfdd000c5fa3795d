"""The plan of the course, the page Teach, and the questions for Moodle and Canvas."""

from __future__ import annotations

import io
import math
import re
import zipfile
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from make_plan import decks_of, in_parts, pages, stale
from make_questions import files_of, questions_of
from numpy.testing import assert_allclose
from slides import ROOT
from slides.deck import COURSE, Deck
from slides.gift import gift, html_reader, named
from slides.page import PageWriter
from slides.plan import Plan, PlanError, read_homework, read_plan
from slides.question import Choice, Question

from attnbook import attend

CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.md"))
NAMES = [f"{int(path.name[:2])}{half}" for path in CHAPTERS for half in "ab"]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PART = re.compile(r"(?:^|\\\n|\* |: )\(([a-e])\)", re.MULTILINE)
NASTY = Question(
    "1a",
    r"Is {a} = b: ~half, #1 of $\nu$?",
    "",
    'Let $\\nu = \\{x\\}$: *so*\n\n$$\n\\frac{a}{b}\n$$\n\nand # ~ = { } \\\\ < & "it\'s"',
    (Choice("a\\n, ~b", False, "takes = for $\\ne$: 1 # 2"), Choice("$x < y$", True)),
    "One.\n\nTwo: $\\nabla f = 0$.",
)


@pytest.fixture(scope="module")
def decks(writers: dict[str, PageWriter]) -> dict[str, Deck]:
    return decks_of(writers)


@pytest.fixture(scope="module")
def plan(decks: dict[str, Deck]) -> Plan:
    return read_plan(ROOT / "lectures/plan.toml", decks)


@pytest.fixture(scope="module")
def groups(writers: dict[str, PageWriter]) -> list[tuple[str, list[Question]]]:
    return questions_of(ROOT, writers)


@pytest.fixture(scope="module")
def files(groups: list[tuple[str, list[Question]]]) -> dict[str, bytes]:
    return files_of(groups)


def test_each_course_has_every_lecture_once_in_its_minutes(plan, decks):
    assert [schedule.sessions for schedule in plan.schedules] == [18, 9, 12, 6]
    for schedule in plan.schedules:
        assert [name for session in schedule.lectures for name in session] == NAMES[:COURSE]
        for session in schedule.lectures:
            assert sum(decks[n].minutes(schedule.path) for n in session) <= schedule.minutes


def test_exam_and_quiz_cover_the_course(plan):
    asked = list(dict.fromkeys(one.lecture for one in plan.exam))
    assert asked[:COURSE] == NAMES[:COURSE]
    assert asked == sorted(asked, key=NAMES.index)
    assert sum("derivation" in one.question.lower() for one in plan.exam) >= 2
    assert {one.lecture[:-1] for one in plan.quiz} >= {name[:-1] for name in NAMES[:COURSE]}
    for one in plan.exam:  # (a), (b) and so on: each asked part has its answer, on a line
        question, answer = (re.findall(PART, in_parts(s)) for s in (one.question, one.answer))
        assert question == answer == list("abcde")[: len(question)], one.question
    assert len(plan.quiz) == 12
    places = [[choice.is_right for choice in one.choices].index(True) for one in plan.quiz]
    assert max(map(places.count, places)) <= len(places) / 2
    answers = [choice.text for one in plan.quiz for choice in one.choices]
    assert all(len(text) <= 75 for text in answers)


def test_the_sample_paper_takes_ninety_minutes_and_its_code_runs(plan):
    assert sum(one.points for one in plan.exam if one.paper) == 90
    names = {"np": np, "torch": torch, "math": math}
    blocks = [code for one in plan.exam for code in re.findall(PYTHON, one.answer)]
    for code in blocks:
        exec(code, names)
    q, k, v = np.random.default_rng(0).normal(size=(3, 2, 5, 4))
    seen = np.tri(5, dtype=bool)
    assert_allclose(names["causal_attention"](q, k, v), attend(q, k, v, mask=seen), rtol=1e-12)
    mask = names["sink_mask"](10, 4)
    assert mask.sum() == 40 and [*np.flatnonzero(mask[-1])] == [0, 6, 7, 8, 9]
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Embedding(64, 16), torch.nn.Linear(16, 64))
    text, starts = torch.arange(640) % 64, torch.randint(600, (200, 8))
    adam = torch.optim.Adam(model.parameters(), 0.03)
    bits = names["train"](model, adam, text, starts, 16)
    assert 5.5 < bits[0] < 7 and bits[-1] < 0.5
    assert model(torch.tensor([[5]])).argmax() == 6  # each character follows from the one before


def test_each_project_has_its_section(plan):
    text = (ROOT / "appendices/projects.md").read_text("utf-8")
    for project in plan.projects:
        title = project["title"].lower()
        assert re.search(
            rf"^\({project['label']}\)=\n## .*: {re.escape(title)}$", text.lower(), re.M
        )
    assert len(plan.projects) == text.count("\n## ") == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '["1a"], ["1b"], ["2a"]',
            '["1a"], ["0b"], ["2a"]',
            "got the lecture 0b, expected one of 1a",
        ),
        ('right = "3.5"\n', "", "missing 1 required positional argument: 'right'"),
        ("[[exam]]", "[[exams]]", "'exam'"),
        ("[course]", "[course", "TOMLDecodeError"),
    ],
)
def test_an_entry_that_is_wrong_is_named(old, new, message, decks, tmp_path):
    text = (ROOT / "lectures/plan.toml").read_text("utf-8")
    assert old in text
    path = tmp_path / "plan.toml"
    count = -1 if old == "[[exam]]" else 1
    path.write_text(text.replace(old, new, count), "utf-8")
    with pytest.raises(PlanError, match=rf"plan\.toml: .*{message}"):
        read_plan(path, decks)


def test_homework_is_read_where_there_is_some(decks, tmp_path):
    assert read_homework(tmp_path / "none", decks) == []
    path = tmp_path / "hw1.toml"
    path.write_text('title = "Averages"\nafter = "1b"\n', "utf-8")
    (found,) = read_homework(tmp_path, decks)
    assert (found.name, found.title, found.after) == ("hw1", "Averages", "1b")
    (tmp_path / "hw10.toml").write_text('title = "Last"\nafter = "9b"\n', "utf-8")
    (tmp_path / "hw2.toml").write_text('title = "Next"\nafter = "2b"\n', "utf-8")
    assert [one.name for one in read_homework(tmp_path, decks)] == ["hw1", "hw2", "hw10"]
    path.write_text('title = "Averages"\nafter = "0b"\n', "utf-8")
    with pytest.raises(PlanError, match=r"hw1\.toml: after: got '0b', expected one of 1a, 1b"):
        read_homework(tmp_path, decks)


def test_the_pages_have_everything_and_a_stale_one_is_found(writers, plan, tmp_path):
    texts = pages(ROOT, writers)
    teach, exam = texts.values()
    assert "<!--" not in teach + exam
    for writer in writers.values():
        deck = writer.deck
        links = (2 if deck.is_further else 5) + (deck.number == "1a")
        assert teach.count(f"lectures/{deck.name}.html") == links
        assert f"</a>, {deck.minutes():g}, unhurried <a" in teach
        assert all(outcome in teach for outcome in deck.about["outcomes"])
        for question in writer.questions:
            for choice in question.choices:
                assert choice.is_right or f"“{choice.text}”: {choice.misconception}." in teach
    for one in plan.exam:
        assert in_parts(one.question) in exam
        assert in_parts(one.answer) in exam
    assert "\\\n(b) " in exam
    for one in plan.quiz:
        assert one.stem.strip() in exam
    assert stale(texts) == []
    written = {tmp_path / file.name: text for file, text in texts.items()}
    assert len(stale(written)) == 2
    for file, text in written.items():
        file.write_text(text, "utf-8")
    assert stale(written) == []
    (tmp_path / "teach.md").write_text(teach.replace("18 sessions", "19 sessions", 1), "utf-8")
    assert ["teach.md is not what" in one for one in stale(written)] == [True]


@dataclass
class Read:
    """A question as a file has it."""

    title: str
    stem: str
    choices: list[tuple[str, bool, str]] = field(default_factory=list)
    answer: str = ""


def read_gift(text: str) -> dict[str, list[Read]]:
    """GIFT back into questions, by its rules; what is no question of ours fails."""
    found: dict[str, list[Read]] = {}
    for block in re.split(r"\n\s*\n", re.sub(r"^//.*$", "", text, flags=re.MULTILINE).strip()):
        if category := re.fullmatch(r"\$CATEGORY: attnbook/(.+)", block.strip()):
            questions = found.setdefault(category[1].replace("//", "/"), [])
            continue
        marks = re.sub(r"\\.", lambda m: f"\0{ord(m[0][1]):04d}", block.strip())
        match = re.fullmatch(r"::([^:]+)::\[html\]([^{}~=#]+)\{\n([^{}]+)\}", marks)
        assert match, block
        body, _, answer = match[3].partition("####")
        one = Read(decoded(match[1]), decoded(match[2]), answer=decoded(answer.strip()))
        for line in body.strip().split("\n"):
            choice = re.fullmatch(r"([=~])([^=~#]+)(?:#([^=~#]+))?", line)
            assert choice, line
            one.choices.append((decoded(choice[2]), choice[1] == "=", decoded(choice[3] or "")))
        questions.append(one)
    return found


def decoded(text: str) -> str:
    return re.sub(r"\0(\d{4})", lambda m: {"n": "\n"}.get(c := chr(int(m[1])), c), text)


def as_html(question: Question) -> Read:
    reader = html_reader()
    choices = [
        (reader.renderInline(c.text), c.is_right, reader.renderInline(c.feedback))
        for c in question.choices
    ]
    stem, answer = (reader.render(text).strip() for text in (question.stem, question.answer))
    return Read(named(question), stem, choices, answer)


def test_gift_read_back_is_what_was_asked(groups, files):
    found = read_gift(files["attnbook.gift.txt"].decode("utf-8"))
    assert list(found) == [name for name, _ in groups]
    assert len(found) == len(NAMES) + 1
    for name, questions in groups:
        assert found[name] == [as_html(question) for question in questions]


def test_gift_keeps_its_own_signs_apart():
    ((_, (found,)),) = read_gift(gift([("a/b", [NASTY])])).items()
    assert found == as_html(NASTY)
    assert found.title == r"1a Is {a} = b: ~half, #1 of \nu?"
    assert r"\(\nu = \{x\}\)" in found.stem
    assert r"\[\frac{a}{b}\]" in found.stem
    assert found.choices[1] == (r"\(x &lt; y\)", True, "")


@pytest.mark.parametrize(
    ("misconception", "feedback"),
    [
        ("takes a for b; it takes both", "Whoever says so takes a for b; it takes both."),
        ("signs vanish", "Signs vanish."),
        ("", ""),
    ],
)
def test_feedback_is_a_sentence(misconception, feedback):
    assert Choice("b", False, misconception).feedback == feedback


def test_each_lecture_has_a_quiz_for_canvas(groups, files):
    """So that one hands out what has been taught."""
    assert len(files) == len(groups) + 1
    for (_, questions), name in zip(groups, list(files)[1:], strict=True):
        with zipfile.ZipFile(io.BytesIO(files[name])) as opened:
            text = "".join(opened.read(one).decode() for one in opened.namelist())
        assert text.count("<item ") == len(questions) >= 3
