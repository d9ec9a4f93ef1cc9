// Tables: sorting by any column, and filtering by verdict. Without scripts they are plain tables.
(() => {
  "use strict";

  function valueOf(row, column) {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    const number = Number(text);
    return text !== "" && Number.isFinite(number) ? number : text;
  }

  // Numbers come before text, and empty cells last in both directions.
  function compare(a, b, sign) {
    if (a === "" || b === "") return (a === "") - (b === "");
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return sign * a.localeCompare(b, "en", { numeric: true });
  }

  function sort(table, column, header) {
    const sign = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [valueOf(row, column), row]);
    rows.sort(([a], [b]) => compare(a, b, sign));
    body.append(...rows.map(([, row]) => row));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  }

  function makeSortable(table) {
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      if ("plain" in header.dataset) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(table, column, header));
      header.append(button);
    });
  }

  function makeFilter(form) {
    const rows = [...document.getElementById(form.dataset.filter).tBodies[0].rows];
    const selects = [...form.querySelectorAll("select")];
    const fits = (row) => selects.every((one) => one.value === "" || row.dataset[one.name] === one.value);
    const output = form.querySelector("output");
    const apply = () => {
      for (const row of rows) row.hidden = !fits(row);
      const shown = rows.filter((row) => !row.hidden).length;
      output.textContent = `${shown} of ${rows.length} shown`;
    };
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    selects.forEach((one) => one.addEventListener("change", apply));
    apply();
  }

  // Open the target of a link, everything around it, and the details of a claim.
  function reveal() {
    const target = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
    if (!target) return;
    for (const fold of target.querySelectorAll(":scope > details")) fold.open = true;
    let fold = target.closest("details");
    for (; fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView({ block: "center" });
  }

  // A table that can be scrolled fades at the side where it continues.
  function showMore(box) {
    const left = box.scrollWidth - box.clientWidth - box.scrollLeft;
    box.classList.toggle("more", left > 2);
  }

  const sizes = new ResizeObserver((all) => all.forEach(({ target }) => showMore(target)));
  for (const box of document.querySelectorAll(".scroll")) {
    sizes.observe(box);
    box.addEventListener("scroll", () => showMore(box), { passive: true });
  }

  window.addEventListener("hashchange", reveal);
  document.querySelectorAll("table[data-sortable]").forEach(makeSortable);
  document.querySelectorAll("form[data-filter]").forEach(makeFilter);
  reveal();
})();
