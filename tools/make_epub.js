// Takes a page's text out as XHTML, for tools/make_epub.py: formulas as MathML, stills, what is folded as notes.
({slug, slugs, home}) => {
  const article = document.querySelector(".bd-article");
  const unseen = "script, noscript, button, .headerlink, .katex-html, .sd-octicon, .screen-only, .exercise-done, .exercise-count, .attnbook-live-head, .moving-controls, .moving-said, [role=status]";
  for (const part of article.querySelectorAll(unseen)) part.remove();
  const make = (name, properties) => Object.assign(document.createElement(name), properties);

  // Formulas: MathML in the place of what stood around it.
  for (const katex of article.querySelectorAll(".katex-display, .katex")) {
    const math = katex.querySelector("math");
    if (math) katex.replaceWith(math);
  }
  for (const row of article.querySelectorAll("mo > mrow")) row.parentElement.textContent = row.textContent; // of \bmod

  // Drawings: the theme's light colours, and a description that does not depend on a style sheet.
  const theme = getComputedStyle(document.documentElement);
  const colour = (text) => text.replace(/var\((--[\w-]+)(?:,[^)]*)?\)/g, (_, name) => theme.getPropertyValue(name).trim());
  for (const part of article.querySelectorAll("svg, svg *")) {
    for (const {name, value} of [...part.attributes]) {
      if (/^(data-|tabindex|focusable)/.test(name)) part.removeAttribute(name);
      else if (value.includes("var(--")) part.setAttribute(name, colour(value));
    }
  }
  for (const text of article.querySelectorAll("svg style")) text.textContent = colour(text.textContent);

  // Live figures: as they start, and where they move.
  for (const live of article.querySelectorAll(".attnbook-live")) {
    const figure = make("figure", { className: "still", id: live.id });
    const caption = make("figcaption", { textContent: live.querySelector(".attnbook-still p")?.textContent ?? "" });
    caption.append(home ? " It moves at " : " It moves on the book’s site.");
    if (home) caption.append(make("a", { href: location.href, textContent: home }), ".");
    figure.append(live.querySelector("img"), caption);
    live.replaceWith(figure);
  }

  // What is folded away, and the solutions: notes at the chapter's end, each with a way there and back.
  const noted = (title, id) => {
    const section = make("section", { id, innerHTML: `<h2>${title}</h2>` });
    section.setAttribute("epub:type", "endnotes");
    return section;
  };
  const note = (section, here, id, words, parts) => {
    const aside = make("aside", { id }), heading = make("p", { className: "note-title" });
    aside.setAttribute("epub:type", "endnote");
    heading.append(make("a", { href: `#${here.id}`, textContent: words }));
    aside.append(heading, ...parts);
    section.append(aside);
    const link = make("a", { href: `#${id}`, className: "to-note" });
    link.setAttribute("epub:type", "noteref");
    return link;
  };
  const folded = noted("Folded away", "folded-away"), solutions = noted("Solutions", "all-solutions");
  const folds = [...article.querySelectorAll("details")].filter((fold) => !fold.parentElement.closest("details"));
  folds.forEach((fold, at) => {
    const summary = fold.querySelector("summary"), words = summary.textContent.trim().replace(/\s+/g, " ");
    summary.remove();
    const here = make("p", { className: "fold", id: `folded-${at + 1}` });
    const link = note(folded, here, `note-${at + 1}`, words, fold.childNodes);
    link.textContent = words;
    here.append(link);
    fold.replaceWith(here);
  });
  for (const fold of folded.querySelectorAll("details")) { // a fold in a fold stands open
    fold.querySelector("summary").remove();
    fold.replaceWith(...fold.childNodes);
  }
  for (const solution of article.querySelectorAll(".solution")) {
    const name = solution.querySelector(".admonition-title"), of = name.querySelector("a");
    const exercise = document.getElementById(decodeURIComponent(of.hash.slice(1)));
    name.remove();
    const link = note(solutions, exercise, solution.id, name.textContent.replace(/\s+/g, " ").trim(), solution.childNodes);
    link.textContent = "Solution";
    exercise.querySelector(".admonition-title").append(" ", link);
    solution.remove();
  }
  for (const section of [folded, solutions]) if (section.childElementCount > 1) article.append(section);

  // Names that XML allows, links to the book's pages, and nothing that a reader would fetch.
  const legal = (id) => id.replace(/[^\w.-]/g, "-").replace(/^(?=[\d.-])/, "_");
  for (const link of article.querySelectorAll("a[href]")) {
    const url = new URL(link.href), target = slugs[url.pathname.slice(1)], id = decodeURIComponent(url.hash.slice(1));
    if (url.origin !== location.origin) continue;
    if (target) link.setAttribute("href", `${target}.xhtml${id ? "#" + legal(id) : ""}`);
    else if (home) link.href = home + url.pathname + url.search + url.hash;
    else link.replaceWith(...link.childNodes); // the site has no address yet
  }
  const seen = new Set();
  for (const part of article.querySelectorAll("[id]")) {
    part.id = legal(part.id);
    if (seen.has(part.id)) part.removeAttribute("id"); // Sphinx names the content of every exercise alike
    seen.add(part.id);
  }
  const pictures = [];
  for (const image of article.querySelectorAll("img")) {
    const path = new URL(image.src).pathname.slice(1), name = path.replaceAll("/", "-").replace(/\.webp$/, ".png");
    for (const attribute of ["loading", "decoding", "fetchpriority", "srcset", "style"]) image.removeAttribute(attribute);
    pictures.push([name, decodeURIComponent(path), image.getAttribute("src")]);
  }
  const bare = (heading) => heading.textContent.trim().replace(/\s+/g, " ");
  const whole = make("section", {});
  whole.append(...article.childNodes);
  let body = new XMLSerializer().serializeToString(whole);
  for (const [name, , source] of pictures) body = body.replaceAll(`src="${source}"`, `src="../images/${name}"`);
  return {
    body,
    title: bare(whole.querySelector("h1")),
    sections: [...whole.querySelectorAll("section[id] > h2")]
      .map((heading) => [heading.parentElement.id, bare(heading)]).filter(([id]) => id !== "folded-away"),
    pictures: pictures.map(([name, path]) => [name, path]),
    properties: ["svg", "math"].filter((name) => whole.querySelector(name)).map((name) => name.replace("math", "mathml")),
  };
}
