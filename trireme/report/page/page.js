// What moves on the page: values under the pointer, tables that sort and copy, the theme, printing. Asks for nothing.
(function () {
  "use strict";
  const root = document.documentElement;

  // ---- figures ----
  // Every mark has its text as a title, which browsers show by themselves, late and small: here it moves into a box.
  const tip = document.body.appendChild(document.createElement("div"));
  tip.className = "tip";
  tip.hidden = true;
  let shown = null;
  function show(mark, event) {
    if (shown && shown !== mark) shown.classList.remove("on");
    shown = mark;
    tip.hidden = !mark;
    if (!mark) return;
    mark.classList.add("on");
    const [where, ...what] = mark.dataset.tip.split("\n");
    tip.replaceChildren(Object.assign(document.createElement("b"), { textContent: where }), what.join("\n"));
    const left = Math.min(event.clientX + 14, root.clientWidth - tip.offsetWidth - 8);
    const above = event.clientY - tip.offsetHeight - 12;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = (above > 8 ? above : event.clientY + 18) + "px";
  }
  // The mark under the pointer, else the nearest within reach.
  function nearest(marks, event) {
    let best = null, least = 20;
    for (const mark of marks) {
      const box = mark.getBoundingClientRect();
      const distance = Math.hypot(Math.max(box.left - event.clientX, 0, event.clientX - box.right),
                                  Math.max(box.top - event.clientY, 0, event.clientY - box.bottom));
      if (distance < least) [best, least] = [mark, distance];
    }
    return best;
  }
  document.querySelectorAll(".plot svg").forEach((drawing) => {
    const marks = [...drawing.querySelectorAll(".mark")];
    marks.forEach((mark) => { mark.dataset.tip = mark.textContent; mark.replaceChildren(); });
    for (const kind of ["pointermove", "pointerdown"]) drawing.addEventListener(kind, (event) => show(nearest(marks, event), event));
    drawing.addEventListener("pointerleave", () => show(null));
  });

  // ---- tables ----
  function sortBy(table, column, header) {
    const ascending = header.getAttribute("aria-sort") !== "ascending";
    table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const key = (row) => {
      const cell = row.cells[column];
      return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
    };
    // Numbers before text, what is empty last, whichever way it is sorted.
    const rank = (value) => (typeof value === "number" ? 0 : value === "" ? 2 : 1);
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const first = key(a), second = key(b);
      if (rank(first) !== rank(second)) return rank(first) - rank(second);
      const order = typeof first === "number" ? first - second : first.localeCompare(second, "en", { numeric: true });
      return ascending ? order : -order;
    });
    table.tBodies[0].append(...rows);
  }

  const tableText = (table) =>
    [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join("\t")).join("\n");

  async function copy(text, button) {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch (refused) {  // no permission, or an old browser
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    const label = button.dataset.label || button.textContent;
    button.dataset.label = label;
    button.textContent = done ? "Copied" : "Not allowed";
    setTimeout(() => { button.textContent = label; }, 1400);
  }

  document.querySelectorAll("table.data").forEach((table) => {
    table.querySelectorAll("th").forEach((header, column) => {
      header.querySelector("button").addEventListener("click", () => sortBy(table, column, header));
    });
  });
  document.querySelectorAll("button.copy").forEach((button) => {
    button.addEventListener("click", () => {
      const box = button.closest(".command, .tablebox");
      const table = box.querySelector("table");
      copy(table ? tableText(table) : box.querySelector("pre").textContent, button);
    });
  });

  // ---- theme and printing ----
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
  const themeButton = document.querySelector("button.theme");
  function showTheme() {
    themeButton.textContent = isDark() ? "Light" : "Dark";
    themeButton.setAttribute("aria-label", isDark() ? "Switch to the light theme" : "Switch to the dark theme");
  }
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  systemDark.addEventListener("change", showTheme);

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("#findings details:not([open]), details.table:not([open])")];
    closed.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => closed.splice(0).forEach((details) => { details.open = false; }));

  // ---- where one is ----
  const links = new Map([...document.querySelectorAll("nav.contents a")].map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting || !links.has(entry.target.id)) continue;
      links.forEach((link) => link.classList.remove("here"));
      links.get(entry.target.id).classList.add("here");
    }
  }, { rootMargin: "0px 0px -70% 0px" });
  links.forEach((link, id) => { const target = document.getElementById(id); if (target) watcher.observe(target); });

  showTheme();
})();
