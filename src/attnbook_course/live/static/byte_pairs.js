// Byte pairs as attnbook.train.byte_pairs has them: a text is cut into words, and in each the pair that stands first in the
// list of merges becomes one token, until none of its pairs stands there. A byte is written as a sign, a space as Ġ.
const WORD = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;
const printed = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
let unprinted = 256;
const SIGNS = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printed(byte) ? byte : unprinted++));

// A published model counts its tokens in an order of its own. Where single digits are tokens, the rest is cut at them first. The
// texts are typed by readers: what is written as a special token is text like any other (Python's split_special_tokens=True).
const OWN = (merges) => [...new Set([...SIGNS, ...merges.map((pair) => pair.join(""))])];
function byte_pairs(merges, { tokens = OWN(merges), digits = false } = {}) {
  const number = new Map(tokens.map((token, n) => [token, n]));
  const rank = new Map(merges.map(([first, second], n) => [`${first} ${second}`, n]));

  function merged(word) {
    let parts = [...new TextEncoder().encode(word)].map((byte) => SIGNS[byte]);
    for (;;) {
      const ranks = parts.slice(1).map((part, i) => rank.get(`${parts[i]} ${part}`) ?? Infinity);
      const best = Math.min(...ranks);
      if (best === Infinity) return parts; // the smallest of none is infinite, too
      const joined = [];
      for (let i = 0; i < parts.length; i++) joined.push(ranks[i] === best ? parts[i] + parts[++i] : parts[i]);
      parts = joined;
    }
  }

  const cut = (text) => text.match(WORD) ?? [];
  const words = (text) => (digits ? text.split(/(\p{N})/u).flatMap(cut) : cut(text));
  return {
    tokens,
    encode: (text) => words(text).flatMap(merged).map((token) => number.get(token)),
    decode: (numbers) => new TextDecoder().decode(
      Uint8Array.from(numbers.flatMap((n) => [...tokens[n]].map((sign) => SIGNS.indexOf(sign))))),
  };
}
