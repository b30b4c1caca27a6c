"use strict";
const $ = (query, from = document) => [...from.querySelectorAll(query)];

for (const button of $("th button")) button.addEventListener("click", () => {
  const head = button.closest("th"), body = head.closest("table").tBodies[0], at = head.cellIndex;
  const down = head.getAttribute("aria-sort") !== "descending";
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = (row) => row.cells[at].dataset.n === undefined ? row.cells[at].textContent : Number(row.cells[at].dataset.n);
  const rows = [...body.rows].sort((a, b) => { const x = value(a), y = value(b); return x < y ? -1 : x > y ? 1 : 0; });
  body.append(...(down ? rows.reverse() : rows));
});

const planning = document.getElementById("planning");
const inHours = (hours) => hours >= 10 || hours === Math.round(hours) ? `${Math.round(hours).toLocaleString("en")} h` : `${hours.toFixed(1)} h`;
planning.addEventListener("input", () => {
  for (const place of $("[data-work]")) {
    const [minutes, hours, rewrite] = place.dataset.work.split(" ").map(Number);
    const total = minutes * planning.minutes.value + hours * planning.hours.value + rewrite * planning.rewrite.value;
    place.textContent = inHours(total);
    if (place.dataset.n !== undefined) place.dataset.n = total;
  }
});
