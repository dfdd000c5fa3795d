// A number below a million in the tokens of attnbook.datasets.number_words: English, without hyphens and commas.
const SMALL = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen" +
  " seventeen eighteen nineteen").split(" ");
const TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split(" ");

function number_words(n) {
  if (n < 20) return [SMALL[n]];
  if (n < 100) return [TENS[Math.floor(n / 10) - 2], ...(n % 10 ? [SMALL[n % 10]] : [])];
  const [unit, name] = n < 1000 ? [100, "hundred"] : [1000, "thousand"];
  const rest = n % unit ? number_words(n % unit) : [];
  const and = n % unit && n % unit < 100 ? ["and"] : [];
  return [...number_words(Math.floor(n / unit)), name, ...and, ...rest];
}
