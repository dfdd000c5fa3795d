// Comments by giscus, asked for only when the reader presses the button.
"use strict";

{
  const button = document.querySelector(".comments button"), said = button.parentElement;
  button.addEventListener("click", () => {
    const { repository, repositoryNumber, category, categoryNumber } = button.dataset;
    const chosen = document.documentElement.dataset.theme;
    const script = Object.assign(document.createElement("script"), { src: "https://giscus.app/client.js", async: true, crossOrigin: "anonymous" });
    Object.assign(script.dataset, {
      repo: repository, repoId: repositoryNumber, category, categoryId: categoryNumber,
      mapping: "title", strict: "1", reactionsEnabled: "0", inputPosition: "top", lang: "en",
      theme: chosen === "dark" || chosen === "light" ? chosen : "preferred_color_scheme",
    });
    script.addEventListener("error", () => {
      said.textContent = "giscus.app does not answer. ";
      said.append(button);
    });
    said.textContent = "";
    said.after(script);
  });
}
