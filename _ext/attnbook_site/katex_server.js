// Typesets formulas for maths.py: one JSON request a line comes in, one JSON answer a line goes out.
// Usage: node katex_server.js path/to/katex.js
const katex = require(process.argv[2]);
const lines = require("node:readline").createInterface({ input: process.stdin });

lines.on("line", (line) => {
  const { tex, display } = JSON.parse(line);
  let answer;
  try {
    // strict: a construct that LaTeX itself would refuse is an error here too
    answer = { html: katex.renderToString(tex, { displayMode: display, strict: "error" }) };
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
});
