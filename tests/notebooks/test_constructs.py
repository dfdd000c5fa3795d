"""Each construct of the chapters, as Markdown that Colab and JupyterLab show."""

import pytest

SITE = "https://book.test"

CONSTRUCTS = [
    ("$$\na = b\n$$ (eq-a)", "$$\na = b \\tag{1.1}\n$$"),
    ("$$ a $$ (eq-a)\n\n{eq}`eq-a`", "$$\na \\tag{1.1}\n$$\n\n(1.1)"),
    ("{eq}`eq-far`", f"[(2.1)]({SITE}/chapters/02-other.html#equation-eq-far)"),
    ("{ref}`sec-far`", f"[Far away]({SITE}/chapters/02-other.html#sec-far)"),
    ("{ref}`there <sec-far>`", f"[there]({SITE}/chapters/02-other.html#sec-far)"),
    ("{doc}`02-other`", f"[Other *chapter*]({SITE}/chapters/02-other.html)"),
    ("[end](../appendix.md)", f"[end]({SITE}/appendix.html)"),
    ("[it](../pyproject.toml)", "[it](https://git.test/r/blob/main/pyproject.toml)"),
    ("[](sec-far)", f"[Far away]({SITE}/chapters/02-other.html#sec-far)"),
    ("[out](https://out.test)", "[out](https://out.test)"),
    ("(sec)=\n## Here\n\n{ref}`sec`", "## Here\n\nHere"),
    ("{cite:p}`nadaraya1964,\nwatson1964`", "(Nadaraya, 1964; Watson, 1964)"),
    ("{cite:p}`fan1996`", "(Fan and Gijbels, 1996)"),
    ("{cite:t}`bahdanau2015`", "Bahdanau et al. (2015)"),
    ("{py:obj}`attnbook.attend`, {py:obj}`~a.b.c`", "`attnbook.attend`, `c`"),
    ("`{eq}`, `` {eq}`eq-no` ``", "`{eq}`, `` {eq}`eq-no` ``"),
    ("% dropped\n\nkept", "kept"),
    ("- {eq}`eq-z`\n- b", f"- [(1)]({SITE}/appendix.html#equation-eq-z)\n- b"),
    (
        ":::{dropdown} *A*\n- b\n:::",
        "<details>\n<summary><em>A</em></summary>\n\n- b\n\n</details>",
    ),
    (
        ":::{exercise} Means\n:label: ex\n$$\na\nb\n$$\n:::\n\n:::{solution} ex\nSo.\n:::\n\n{ref}`ex`",
        "> **Exercise 1.1 (Means).**\n>\n> $$a b$$\n\n<details>\n<summary>Solution to Exercise 1.1 "
        "(Means)</summary>\n\nSo.\n\n</details>\n\nExercise 1.1",
    ),
    (
        "```{code-cell} ipython3\nmystnb:\n```".replace(
            "mystnb:", ":mystnb: {figure: {caption: C.}}"
        ),
        "**Figure 1.1.** C.",
    ),
    (
        "{cite:t}`fan1996`\n\n```{bibliography}\n```",
        "Fan and Gijbels (1996)\n\n- Jianqing Fan and Irène Gijbels. *Local Polynomials*. "
        "Chapman, 1996.",
    ),
]

MISTAKES = [
    ("```{danger}\n```", "14: unknown directive {danger}; expected one of"),
    ("```{math}\na\n```", "14: unknown directive {math}; write $$ … $$ (label)"),
    ("\\begin{align}\na\n\\end{align}", "14: LaTeX environment 'align'; write $$"),
    ("- a\n\n  $$\n  a\n  $$", "16: a directive or formula must start its line"),
    ("> ```{dropdown} H\n> ```", "14: a directive or formula must start its line"),
    ("{func}`a.b`", "14: unknown role {func}; expected one of cite:p, cite:t, doc,"),
    (":::{dropdown} H\n\na {eq}`no`\n:::", "16: no page of the book has the label 'no'"),
    ("{cite:p}`no`", "14: no reference 'no' in references.bib"),
    ("{doc}`no`", "14: no page 'no'; the book has index"),
    ("{ref}`eq-z`", "14: {ref} cannot refer to the equation 'eq-z'"),
    (":::{solution} no\n:::", "14: no exercise 'no' on this page"),
    (":::{dropdown} H\nnever", "14: the fence ':::{dropdown} H' is never closed"),
    (":::{dropdown} H\n:open:\nb\n:::", "14: unknown option 'open' of {dropdown}; takes none"),
    (":::{solution} ex\n:name: h\nb\n:::", "14: unknown option 'name' of {solution}; takes class"),
    (":::{dropdown}\nb\n:::", "14: {dropdown} needs a title"),
    (":::{dropdown} H\n## No\n:::", "15: a heading inside a directive"),
    ("::::{dropdown} H\n```{code-cell} python\n1\n```\n::::", "15: a code-cell inside"),
    ("<div>", "14: raw HTML, '<div>'"),
    ("a[^1]", "14: footnotes are not used here: [^1]"),
    ("![a](b.png)", "14: a picture needs the figure directive"),
    (":::{figure} a.svg\nNo.\n:::", "14: unknown directive {figure}; expected one of"),
    ("(lost)=\nno heading", "14: a target must stand before a heading"),
    ("# Second title", "1: a page must begin with its title"),
    ("```{code-cell} p\n:tags: [a\n```", "14: the options of {code-cell} cannot be"),
]


@pytest.mark.parametrize(("source", "expected"), CONSTRUCTS)
def test_construct(weave_text, source, expected):
    assert weave_text(source) == expected


@pytest.mark.parametrize(("source", "message"), MISTAKES)
def test_mistake_names_file_and_line(weave_text, source, message):
    with pytest.raises(ValueError) as caught:
        weave_text(source)
    assert f"01-sample.md:{message}" in str(caught.value)


def test_a_label_that_is_given_twice_names_both_places(weave_text):
    said = r"appendix\.md:3: label 'eq-z' is given twice, first in chapters/01-sample\.md"
    with pytest.raises(ValueError, match=said):
        weave_text("$$a$$ (eq-z)")
