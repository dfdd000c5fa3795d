// A field above the index of terms that shows the terms with what is typed. The page reads without it.
"use strict";

const letters = document.querySelector(".letters"), lists = [...document.querySelectorAll("dl.terms")];
const plain = (text) => text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
const terms = lists.flatMap((list) => [...list.querySelectorAll(":scope > dt")]);
const meanings = new Map(terms.map((term) => [term, term.nextElementSibling]));

const frame = document.createElement("p"), field = document.createElement("input"), said = document.createElement("span");
frame.className = "terms-filter screen-only";
field.type = "search";
field.setAttribute("aria-label", "Show the terms with");
field.placeholder = "Show the terms with …";
said.setAttribute("role", "status");
frame.append(field, said);
letters.before(frame);

function filter() {
  const wanted = plain(field.value.trim());
  let shown = 0;
  for (const [term, meaning] of meanings) {
    const fits = plain(term.textContent).includes(wanted) || plain(meaning.textContent).includes(wanted);
    term.hidden = meaning.hidden = !fits;
    shown += fits;
  }
  for (const list of lists)
    list.hidden = list.previousElementSibling.hidden = !list.querySelector(":scope > dt:not([hidden])");
  letters.hidden = wanted !== "";
  said.textContent = wanted ? `${shown} of ${terms.length}` : "";
}
field.addEventListener("input", filter);
filter();
