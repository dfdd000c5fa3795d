"""Every data set of the book, as NumPy arrays: made from a seed, or shipped inside a package."""

from attnbook.datasets.curves import curve, engel, heteroskedastic, noise_level
from attnbook.datasets.functions import Functions, smooth_functions
from attnbook.datasets.his_or_her import Sentences, his_or_her
from attnbook.datasets.images import Digits, digits, photograph, shifted
from attnbook.datasets.number_words import END, PAD, START, Pairs, Translation, number_words
from attnbook.datasets.one_head import OneHead, one_head
from attnbook.datasets.python_reference import Text, python_reference
from attnbook.datasets.reactions import Reaction, reactions, smiles_tokens
from attnbook.datasets.recorded_values import recorded
from attnbook.datasets.sequences import digit_comparisons, means_of_even, repeated_sequences
from attnbook.datasets.six_words import SixWords, six_words
from attnbook.datasets.stored_results import results, timeline

__all__ = [
    "END",
    "PAD",
    "START",
    "Digits",
    "Functions",
    "OneHead",
    "Pairs",
    "Reaction",
    "Sentences",
    "SixWords",
    "Text",
    "Translation",
    "curve",
    "digit_comparisons",
    "digits",
    "engel",
    "heteroskedastic",
    "his_or_her",
    "means_of_even",
    "noise_level",
    "number_words",
    "one_head",
    "photograph",
    "python_reference",
    "reactions",
    "recorded",
    "repeated_sequences",
    "results",
    "shifted",
    "six_words",
    "smiles_tokens",
    "smooth_functions",
    "timeline",
]
