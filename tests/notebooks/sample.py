"""The sources of a small book that uses every construct the chapters may use."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # of the real book

HEADER = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

"""

CHAPTER_1 = r"""(ch-sample)=
# Sample

% not for the reader

:::{dropdown} What is *near*?
Numbers with $x$, and

$$
a = b,
\quad c = d
$$ (eq-quoted)

- a point {eq}`eq-mean`
:::

(sec-why)=
## Why $h$ matters

See {eq}`eq-mean`, {ref}`sec-why`, {numref}`fig-plot`, {ref}`ex-one`,
{cite:p}`nadaraya1964,watson1964`, {cite:t}`bahdanau2015`, {py:obj}`~attnbook.attend`,
{eq}`eq-far`, {ref}`sec-far`, {doc}`02-other`, {doc}`/appendix` and `{eq}` as code.

$$
f(x) = \frac1n \sum_i y_i
$$ (eq-mean)

```{code-cell} ipython3
:tags: [torch]

x = 1
print(x)
```

```{code-cell} ipython3
:tags: [jax]

x = 2
print(x)
```

```{code-cell} ipython3
---
tags: [hide-input]
mystnb:
  image:
    alt: A dot
  figure:
    caption: |
      The dot of {cite:t}`watson1964`
      at $x$.
    name: fig-plot
---
from IPython.display import SVG

print("dot")
SVG('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
```

A mean is a mean.

::::{exercise} By hand
:label: ex-one
Show it.

```python
1 + 1
```
::::

::::{solution} ex-one
:class: dropdown
Done, by {eq}`eq-mean`.

:::{dropdown} Inner
Inner.
:::
::::

:::{dropdown} Hint
Think.
:::

## References

```{bibliography}
:filter: docname in docnames
```
"""

CHAPTER_2 = r"""# Other *chapter*

(sec-far)=
## Far away

$$ a = b $$ (eq-far)

```{code-cell} ipython3
print(3)
```
"""

REFERENCES = r"""
@article{nadaraya1964, author={Nadaraya, E. A.}, title={On estimating regression},
  journal={Theory of Probability}, year={1964}}
@article{watson1964, author={Watson, Geoffrey S.}, title={Smooth regression analysis},
  journal={Sankhy{\=a}}, year={1964}}
@article{bahdanau2015, author={Bahdanau, Dzmitry and Cho, Kyunghyun and Bengio, Yoshua},
  title={Neural machine translation}, journal={ICLR}, year={2015}}
@book{fan1996, author={Fan, Jianqing and Gijbels, Ir{\`e}ne}, title={Local Polynomials},
  publisher={Chapman}, year={1996}}
"""

FILES = {
    "pyproject.toml": '[project.urls]\nRepository = "https://git.test/r"\nBook = "https://book.test"\n',
    "_config.yml": "title: Tiny\nbibtex_bibfiles: [references.bib]\n"
    'sphinx: {config: {numfig_format: {figure: "Figure %s"}}}\n',
    "_toc.yml": "format: jb-book\nroot: index\nparts:\n"
    "  - numbered: true\n    chapters:\n"
    "      - file: chapters/01-sample\n      - file: chapters/02-other\n"
    "  - chapters:\n      - file: appendix\n",
    "index.md": "# The book\n\n```{anything} of the site's\n```\n",
    "appendix.md": "# Appendix\n\n$$ z $$ (eq-z)\n",
    "references.bib": REFERENCES,
    "chapters/01-sample.md": HEADER + CHAPTER_1,
    "chapters/02-other.md": HEADER + CHAPTER_2,
}
