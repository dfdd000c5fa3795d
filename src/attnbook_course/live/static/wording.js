// How figures say numbers and places.
const nth = (k) => k + (k % 100 > 10 && k % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][k % 10] ?? "th");
const minus = (text) => text.replaceAll("-", "−"); // also that of an exponent
const signed = (value, digits) => minus(value.toFixed(digits));
const three = (value) => minus(value.toPrecision(3));
const as_signs = (token) => token.replaceAll("\n", "⏎").replaceAll(" ", "␣");
