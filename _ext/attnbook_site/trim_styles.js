// Removes from the built site's stylesheets what no page and no script of it mentions (the theme ships 0.5 MB), its variables too,
// and every rule of the theme's icon fonts: icons.css draws the icons.
// Usage: node trim_styles.js path/to/node_modules path/to/html
const fs = require("node:fs");
const path = require("node:path");
const [modules, site] = process.argv.slice(2);
const { PurgeCSS } = require(path.resolve(modules, "purgecss"));

const OWN = new Set(["icons.css", "page.css", "content.css", "print.css"]);
const ICON_FONT = /@font-face\s*\{[^}]*Font Awesome[^}]*\}/g;

/** All files below a folder, with "/" between the parts of a path. */
function files(folder) {
  return fs.readdirSync(folder, { recursive: true }).map((name) => path.join(folder, name).replaceAll("\\", "/"));
}

async function main() {
  const all = files(site);
  const styles = all.filter((name) => name.endsWith(".css") && !OWN.has(path.basename(name)));
  const content = all.filter((name) => /\.(html|js)$/.test(name) && !/\/(bokeh|_sources|locales)\//.test(name));
  const own = all.filter((name) => OWN.has(path.basename(name)));
  const variables = [...content, ...own].flatMap((name) => fs.readFileSync(name, "utf8").match(/--[a-z][\w-]*/g) ?? []);
  const trimmed = await new PurgeCSS().purge({
    content,
    css: styles,
    variables: true,
    keyframes: true,
    blocklist: [/^fa[bsr]?$/, /^fa-/],
    safelist: { standard: [/^:/, "html", "body"], greedy: [/data-/], variables: [...new Set(variables)] },
  });
  for (const { file, css } of trimmed) fs.writeFileSync(file, css.replace(ICON_FONT, ""));
}

main();
