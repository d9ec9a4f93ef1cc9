// Light or dark mode: that of the system unless the reader chose. Runs before the page is drawn.
(() => {
  "use strict";
  const root = document.documentElement;
  const KEY = "replication-theme";
  const stored = () => {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // A page from the file system may have no storage.
    }
  };
  const store = (theme) => {
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // The choice then applies to this page only.
    }
  };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const current = () => root.dataset.theme ?? (system.matches ? "dark" : "light");
  const chosen = stored();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => {
      button.textContent = current() === "dark" ? "Light" : "Dark";
      button.setAttribute("aria-label", `Switch to the ${button.textContent.toLowerCase()} theme`);
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      root.dataset.theme = current() === "dark" ? "light" : "dark";
      store(root.dataset.theme);
      label();
    });
    system.addEventListener("change", label);
    label();
  });
})();
