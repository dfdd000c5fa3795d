// The search: MiniSearch ranks the book's places while one types, in the theme's dialog and on the page of the search.
"use strict";

{
  const here = document.currentScript.src;
  const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
  const bare = (html) => html.replace(/<[^>]*>/g, "").replace(/√/g, " sqrt ").replace(/&\w+;/g, " ");
  const ASKING = new Set("a an and are as at be by can do does for from how i in is it me my of on or that the this to use used using was what when where which who why with work works you".split(" "));
  const HALF = 16; // words of a line on each side of a hit

  const script = (name) => new Promise((done, failed) => {
    document.head.append(Object.assign(document.createElement("script"), { src: new URL(name, here), onload: done, onerror: failed }));
  });

  /** The library and the index come with the first letter. */
  let index;
  const load = () => (index ??= Promise.all([script("minisearch.js"), script("search_places.js")]).then(async () => {
    const made = new MiniSearch({
      idField: "at",
      fields: ["title", "also", "page", "words"],
      storeFields: ["title", "also", "page", "text", "weight"],
      extractField: (place, field) => (field === "words" ? bare(place.text.join(" ")) : place[field] ?? ""),
      processTerm: plain,
    });
    await made.addAllAsync(attnbookPlaces);
    return made;
  }));

  /** The places; first those that are called so, and those that have more of the words. */
  const find = (made, asked) => {
    const words = plain(bare(asked)).split(/[\n\r\p{Z}\p{P}]+/u).filter(Boolean), meant = words.filter((word) => !ASKING.has(word));
    const query = (meant.length ? meant : words).join(" "), many = new Set(query.split(" ")).size;
    const found = made.search(query, {
      boost: { title: 4, also: 4, page: 0.3 },
      prefix: (term) => term.length > 2,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      boostDocument: (at, term, { weight }) => weight,
    });
    const isCalled = (one) => [one.title, ...one.also.split(", ")].some((name) => plain(name) === query);
    const value = (one) => one.score * (one.queryTerms.length / many) ** 2 * (isCalled(one) ? 3 : 1);
    return found.sort((one, other) => value(other) - value(one));
  };

  /** Of a place, the line with most of what was found, cut to the words around it; the hits are marked. */
  const excerpt = ({ text, terms }) => {
    const isHit = (word) => plain(bare(word)).split(/[\p{P}\s]+/u).some((part) => terms.includes(part));
    const lines = text.map((line) => line.split(" ")), hits = (line) => new Set(line.filter(isHit).map(plain)).size;
    const best = lines.reduce((one, other) => (hits(other) > hits(one) ? other : one), lines[0] ?? []);
    const middle = Math.max(best.findIndex(isHit), 0), from = Math.max(Math.min(middle - HALF, best.length - 2 * HALF), 0);
    const shown = best.slice(from, from + 2 * HALF).map((word) => (isHit(word) ? `<mark>${word}</mark>` : word)).join(" ");
    return (from ? "… " : "") + shown + (from + 2 * HALF < best.length ? " …" : "");
  };

  const item = (one) => {
    const [page, id] = one.id.split("#"), address = new URL(`../${page}.html${id ? `#${id}` : ""}`, here);
    const where = one.page && one.page !== one.title ? `<small>${one.page}</small>` : "";
    return `<li><a href="${address}">${one.title}</a>${where}<p>${excerpt(one)}</p></li>`;
  };

  for (const form of document.querySelectorAll("form.bd-search")) {
    const field = form.querySelector("input"), dialog = form.closest("dialog"), most = dialog ? 10 : 50;
    const results = document.createElement("div");
    results.className = "search-results";
    results.innerHTML = '<p role="status"></p><ol></ol>';
    const [status, list] = results.children;
    form.after(results);

    const show = async () => {
      const asked = field.value.trim();
      if (!dialog) history.replaceState(null, "", asked ? `?q=${encodeURIComponent(asked)}` : location.pathname);
      let found = [], said = "";
      if (asked) {
        try {
          found = find(await load(), asked);
          said = found.length > most ? `The first ${most} of ${found.length} places` : found.length === 1 ? "1 place" : found.length ? `${found.length} places` : "Nothing in the book has these words.";
        } catch {
          index = undefined; // the next letter tries again
          said = "The search could not be loaded: the site did not answer.";
        }
      }
      if (field.value.trim() !== asked) return; // typed on meanwhile
      status.textContent = said;
      list.innerHTML = found.slice(0, most).map(item).join("");
      results.hidden = !asked;
    };
    field.addEventListener("input", show);
    field.value ||= (!dialog && new URLSearchParams(location.search).get("q")) || "";
    results.hidden = true;
    if (!dialog) field.focus();
    show();

    /** From the field into the list and back by arrows; a place on the same page closes the dialog. */
    form.parentElement.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], stops = [field, ...list.querySelectorAll("a")];
      const next = step && stops[stops.indexOf(document.activeElement) + step];
      if (!next) return;
      event.preventDefault();
      next.focus();
    });
    list.addEventListener("click", (event) => event.target.closest("a") && dialog?.close());
  }
}
