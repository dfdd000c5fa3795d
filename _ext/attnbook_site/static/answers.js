// Answers that talk back: after a wrong one more is said at each press, and all of it can be copied for an assistant.
"use strict";

const REQUEST = `I am working on an exercise of a book and want to find the answer myself. Do not solve it, and show me no code
of a solution. Ask me one question at a time, wait for my answer, and let me find my mistake.`.replace("\n", " ");

/** Below what a check said: a button for what comes next, and one to copy. Nothing where the answer is right. */
function talkBack(cell, shown) {
  const { content, cause = "" } = shown.findLast((one) => one.cause !== undefined || one.kind === "error") ?? {};
  if (!content || content.startsWith("✓ ")) return;
  const tried = !content.startsWith("… ") && cell.now() !== cell.code, left = steps(cell.card, cause, tried);
  const onwards = button("", () => {
    const [, say] = left.shift(), said = say();
    if (said) cell.output.append(said);
    if (left.length) [[onwards.textContent]] = left;
    else {
      if (document.activeElement === onwards) onwards.nextElementSibling.focus();
      onwards.remove();
    }
  });
  cell.next = make("div", "run-next");
  if (left.length) {
    [[onwards.textContent]] = left;
    cell.next.append(onwards);
  }
  cell.next.append(copier(cell.card, cell));
  cell.output.after(cell.next);
}

/** What can still be said of an exercise: the words of its button, and what shows it. */
function steps(card, cause, tried) {
  const exercise = card.querySelector(".exercise"), [hint, solution] = card.querySelectorAll("details.sd-dropdown");
  const told = [...exercise.classList].find((one) => one.startsWith("told-in-"))?.slice("told-in-".length);
  const section = told && document.getElementById(told);
  const found = [];
  if (cause.trim()) found.push(["What could it be?", () => make("p", "run-step", cause.trim().replace(/^./, (first) => first.toUpperCase()))]);
  if (!hint.open) found.push(["A hint", () => {
    const body = hint.querySelector(".sd-card-body").cloneNode(true);
    body.className = "run-step";
    for (const one of body.querySelectorAll("[id]")) one.removeAttribute("id");
    return body;
  }]);
  if (section) found.push(["Where it is explained", () => {
    const link = make("a", "", plain(section.querySelector("h2, h3, h4")).trim()), line = make("p", "run-step", "Read ");
    link.href = `#${told}`;
    line.append("“", link, "”.");
    return line;
  }]);
  if (tried) found.push(["The solution", () => {
    solution.open = true;
    solution.querySelector("summary").focus({ preventScroll: true });
    solution.lastElementChild.scrollIntoView({ block: "nearest" });
    return null;
  }]);
  return found;
}

/** An element's text in Markdown, with formulas as LaTeX. */
function plain(element) {
  const tex = (node) => node.querySelector("annotation").textContent.trim();
  let text = "";
  for (const node of element.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) text += node.data.replace(/\s+/g, " ");
    else if (node.nodeType !== Node.ELEMENT_NODE || node.matches(".headerlink, .copybtn")) continue;
    else if (node.matches("pre")) text += `\n\n\`\`\`\n${node.textContent.trimEnd()}\n\`\`\`\n\n`;
    else if (node.matches(".math-display")) text += `\n\n$$\n${tex(node)}\n$$\n\n`;
    else if (node.matches(".katex")) text += `$${tex(node)}$`;
    else if (node.matches("code")) text += `\`${node.textContent}\``;
    else if (node.matches("li")) text += `\n- ${plain(node).trim()}`;
    else if (node.matches("p, ul, ol, section")) text += `\n\n${plain(node).trim()}\n\n`;
    else text += plain(node);
  }
  return text.replace(/\n\s*\n/g, "\n\n");
}

/** What an assistant is told: the request, the question, the draft and what the page has said so far. */
function forAssistant(card, cell) {
  const exercise = card.querySelector(".exercise"), [title, ...text] = exercise.children;
  const stub = card.querySelector(".cell_input pre")?.textContent.trimEnd(), fence = (code) => `\`\`\`python\n${code}\n\`\`\``;
  const parts = [REQUEST, `## ${title.textContent.replace(/\s+/g, " ").trim()}`, ...text.map((one) => plain(one).trim())];
  for (const link of exercise.querySelectorAll('a[href^="#fig-"]'))
    parts.push(plain(document.getElementById(link.hash.slice(1)).querySelector("figcaption")).trim());
  if (cell) parts.push("## My draft", fence(cell.now().trimEnd()), "## What I was told so far", plain(cell.output).trim());
  else if (stub) parts.push("## What is to be written", fence(stub), "## My draft");
  else parts.push("## My answer so far");
  return `${parts.join("\n\n")}\n`;
}

/** A button that copies this, and says so; where the browser does not let it, a field to copy from. */
function copier(card, cell) {
  const copy = button("Copy for my assistant", async () => {
    const text = forAssistant(card, cell), said = copy.nextElementSibling ?? make("p", "run-copied");
    said.setAttribute("role", "status");
    copy.after(said);
    try {
      await navigator.clipboard.writeText(text);
      said.replaceChildren(`Copied: the question${cell ? ", your draft and what you were told" : ""}. Nothing was sent.`);
    } catch {
      const field = make("textarea", "");
      Object.assign(field, { value: text, readOnly: true, rows: 8, ariaLabel: "The text for an assistant" });
      said.replaceChildren("This browser does not let the page copy. Copy the text from here:", field);
      field.focus();
      field.select();
    }
  });
  return copy;
}

// an exercise without a check here: an explanation, or one that needs another library
for (const card of document.querySelectorAll(".exercise-card:not(:has(> .cell.runs))")) {
  const row = make("div", "run-next");
  row.append(copier(card));
  card.querySelector("details.solution").after(row);
}
