// Takes a page's text out, for tools/print_book.py: names made the book's, links made to lead within it, solutions last.
({slug, slugs, home}) => {
  const unseen = "script, noscript, button, .headerlink, .sd-tab-set > input, .katex-mathml, .sd-summary-state-marker, .screen-only, .exercise-done, .exercise-count, .run-files, input[type=file]";
  const article = document.querySelector(".bd-article");
  const solutions = article.querySelectorAll(".solution");
  for (const formula of article.querySelectorAll(".katex")) {
    formula.querySelector(".katex-html").ariaHidden = null; // the MathML, which assistive devices read, goes
    const math = formula.parentElement, next = math.nextSibling;
    const mark = next?.nodeType === Node.TEXT_NODE && /^[.,;:?!)’”-]+/.exec(next.data);
    if (!mark) continue;
    // no line begins with the full stop of a formula
    const whole = Object.assign(document.createElement("span"), { className: "unbroken" });
    next.splitText(mark[0].length);
    math.replaceWith(whole);
    whole.append(math, next);
  }
  for (const part of article.querySelectorAll(unseen)) {
    if (part.querySelector(".attnbook-live")) document.body.append(part); // its script may come later, and looks for it
    else part.remove();
  }
  for (const fold of article.querySelectorAll("details")) fold.open = true;
  for (const image of article.querySelectorAll("img")) {
    image.removeAttribute("loading"); // on paper the reader is everywhere at once
    image.src = image.src;
  }
  const place = (id) => id ? `${slug}--${id}` : slug;
  for (const solution of solutions) {
    const title = solution.closest(".exercise-card").querySelector(".admonition-title");
    const name = (title.querySelector(".caption-number") ?? title).textContent; // a build's number is in its name
    solution.querySelector(".sd-summary-text").textContent = `Solution to ${name}`;
    title.insertAdjacentHTML("beforeend", `<a class="to-solution" data-page="000" href="#${solution.id}">Solution</a>`);
  }
  if (solutions.length) {
    article.insertAdjacentHTML("beforeend", '<section id="solutions"><h2>Solutions</h2></section>');
    article.lastElementChild.append(...solutions);
  }
  for (const link of article.querySelectorAll("a[href]")) {
    const url = new URL(link.href), id = decodeURIComponent(url.hash.slice(1));
    if (url.origin !== location.origin) continue;
    const target = slugs[url.pathname.slice(1)];
    if (target) link.href = "#" + target + (id ? "--" + id : "");
    else if (home) link.href = home + url.pathname + url.search + url.hash;
    else link.replaceWith(...link.childNodes); // the site has no address yet
  }
  // A section may begin at the foot of a page and its heading stand on the next: links lead to the heading.
  for (const heading of article.querySelectorAll(":is(section[id], section[id] > details.deeper > summary) > :is(h1, h2, h3, h4):not(.rubric)")) {
    const section = heading.closest("section");
    while (heading.previousElementSibling) heading.prepend(heading.previousElementSibling);
    heading.id = section.id;
    section.removeAttribute("id");
  }
  for (const part of article.querySelectorAll("[id]")) part.id = place(part.id);
  const bare = (heading) => heading.innerHTML.replace(/ id="[^"]*"/g, "");
  return {
    body: article.innerHTML,
    title: article.querySelector("h1").textContent,
    subtitle: article.querySelector("strong")?.textContent.replace(/[.]$/, ""),
    heading: bare(article.querySelector("h1")),
    sections: [...article.querySelectorAll("h2")].map((heading) => [heading.id, bare(heading)]),
    styles: [...document.querySelectorAll("link[rel=stylesheet]")].map((link) => link.href),
  };
}
