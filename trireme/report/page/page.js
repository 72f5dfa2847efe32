// What moves on the page: charts with whiskers and hover, tables that sort and copy, the theme, printing. Reads the
// figures from the page itself and asks for nothing else.
(function () {
  "use strict";
  const figures = JSON.parse(document.getElementById("report-data").textContent);
  const root = document.documentElement;
  const charts = [];

  // A variable's colour in the theme that holds now; the variable itself has both.
  const probe = document.body.appendChild(document.createElement("span"));
  probe.hidden = true;
  const style = (name) => {
    probe.style.color = "var(" + name + ")";
    return getComputedStyle(probe).color;
  };
  const colour = (series) => style("--s" + (series % 8));
  const number = (value) => {
    const size = Math.abs(value);
    const digits = size >= 100 ? 1 : size >= 1 ? 2 : 4;
    return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toFixed(digits)));
  };

  // ---- charts ----
  // The interval of each point as a whisker; Chart.js has none of its own.
  const whiskers = {
    id: "whiskers",
    afterDatasetsDraw(chart) {
      const { ctx, chartArea } = chart;
      ctx.save();
      ctx.beginPath();
      ctx.rect(chartArea.left - 6, chartArea.top, chartArea.width + 12, chartArea.height);
      ctx.clip();
      ctx.lineWidth = 1.5;
      chart.data.datasets.forEach((dataset, index) => {
        if (!chart.isDatasetVisible(index) || dataset.ideal) return;
        ctx.strokeStyle = dataset.whiskerColour;
        chart.getDatasetMeta(index).data.forEach((element, i) => {
          const point = dataset.data[i];
          if (!point || point.low === undefined) return;
          const low = chart.scales.y.getPixelForValue(point.low), high = chart.scales.y.getPixelForValue(point.high);
          ctx.beginPath();
          ctx.moveTo(element.x, low);
          ctx.lineTo(element.x, high);
          for (const end of [low, high]) {
            ctx.moveTo(element.x - 4, end);
            ctx.lineTo(element.x + 4, end);
          }
          ctx.stroke();
        });
      });
      ctx.restore();
    },
  };

  // Room between the legend and the plot, which Chart.js has no option for.
  const legendRoom = {
    id: "legendRoom",
    beforeInit(chart) {
      const fit = chart.legend.fit;
      chart.legend.fit = function () {
        fit.call(this);
        this.height += 12;
      };
    },
  };

  // All ideal lines have one entry; clicking it shows or hides them.
  function legendLabels(chart) {
    const labels = Chart.defaults.plugins.legend.labels.generateLabels(chart);
    let ideals = 0;
    return labels.filter((label) => {
      if (!chart.data.datasets[label.datasetIndex].ideal) return true;
      label.text = "ideal";
      return ideals++ === 0;
    });
  }

  function toggle(event, item, legend) {
    const chart = legend.chart, visible = chart.isDatasetVisible(item.datasetIndex);
    const ideal = chart.data.datasets[item.datasetIndex].ideal;
    chart.data.datasets.forEach((other, index) => {
      if (index === item.datasetIndex || (ideal && other.ideal)) chart.setDatasetVisibility(index, !visible);
    });
    chart.update();
  }

  const isLying = (figure) => figure.kind === "stacked_bars";  // bars from left to right: their names have room

  const pointOf = (point, figure) => {
    const place = figure.x.categories ? figure.x.categories[point.x] : point.x;
    const result = { x: isLying(figure) ? point.y : place, y: isLying(figure) ? place : point.y, value: point.y, runs: point.runs };
    if (point.low !== undefined) Object.assign(result, { low: point.low, high: point.high, interval: point.interval });
    return result;
  };

  function dataset(figure, series, index) {
    const isLine = figure.kind === "lines", ideal = series.ideal_of !== undefined;
    const ink = colour(ideal ? series.ideal_of : series.colour === undefined ? index : series.colour);
    return {
      label: series.name,
      data: series.points.map((point) => pointOf(point, figure)),
      ideal,
      borderColor: ink,
      backgroundColor: ink,
      whiskerColour: isLine ? ink : style("--ink"),
      borderWidth: isLine ? (ideal ? 1.5 : 2.2) : 0,
      borderDash: ideal ? [5, 5] : [],
      pointRadius: ideal || series.points.length > 100 ? 0 : series.points.length > 25 ? 2.5 : 4,
      pointHoverRadius: ideal ? 0 : 6,
      pointHitRadius: 12,
      pointStyle: ideal ? "line" : ["circle", "rectRot", "triangle", "rect"][Math.floor(index / 8) % 4],
      tension: 0,
      borderRadius: figure.kind === "bars" ? 3 : 0,
      maxBarThickness: 64,
      categoryPercentage: 0.78,
      barPercentage: 0.9,
    };
  }

  // With few places on an axis of numbers these are the ticks, so that no chart shows 1.5 workers.
  function placesOf(figure) {
    if (figure.kind !== "lines") return null;
    const places = [...new Set(figure.series.flatMap((series) => series.points.map((point) => point.x)))];
    return places.length <= 10 ? places.sort((a, b) => a - b) : null;
  }

  function sizeText(bytes) {
    const units = [[1e9, " G"], [1e6, " M"], [1e3, " k"]];
    for (const [unit, name] of units) if (Math.abs(bytes) >= unit) return number(bytes / unit) + name;
    return number(bytes);
  }

  function axis(figure, which) {
    const description = figure[which], isX = which === "x";
    const places = isX ? placesOf(figure) : null;
    const scale = {
      type: description.categories ? "category" : description.logarithmic ? "logarithmic" : "linear",
      stacked: figure.kind === "stacked_bars",
      title: { display: Boolean(description.title), text: description.title, color: style("--quiet"), font: { size: 12.5 } },
      grid: { color: isX ? "transparent" : style("--faint"), borderColor: style("--line"), tickColor: "transparent" },
      ticks: { color: style("--quiet"), font: { size: 12 }, maxRotation: 40, autoSkip: !description.categories },
    };
    if (!description.categories) scale.ticks.callback = isX ? sizeText : number;
    if (description.categories && isX)
      scale.ticks.callback = function (value) {
        const label = this.getLabelForValue(value);
        const room = isLying(figure) ? 48 : 34;
        return label.length > room ? label.slice(0, room - 1) + "…" : label;
      };
    if (places) {
      scale.afterBuildTicks = (built) => { built.ticks = places.map((value) => ({ value })); };
      scale.ticks.autoSkip = false;
      const reach = places.length > 1 ? (places[places.length - 1] - places[0]) * 0.04 : 1;
      if (!description.logarithmic) Object.assign(scale, { min: places[0] - reach, max: places[places.length - 1] + reach });
    }
    if (description.logarithmic && !places) {
      const values = figure.series.flatMap((series) => series.points.map((point) => point[which]));
      const low = Math.min(...values), high = Math.max(...values);
      Object.assign(scale, { min: low / 1.3, max: high * 1.3 });
      // Whole powers alone, of ten where there are enough of them.
      const base = high / low > 300 ? 10 : 2;
      scale.afterBuildTicks = (built) => {
        built.ticks = [];
        for (let power = Math.ceil(Math.log(low / 1.3) / Math.log(base)); base ** power <= high * 1.3; ++power)
          built.ticks.push({ value: base ** power, major: true });
      };
    }
    if (!isX && !description.logarithmic && !description.categories) {
      const highest = Math.max(...figure.series.flatMap((s) => s.points.map((p) => (p.high === undefined ? p.y : p.high))));
      const lowest = Math.min(...figure.series.flatMap((s) => s.points.map((p) => (p.low === undefined ? p.y : p.low))));
      if (figure.kind !== "stacked_bars") scale.suggestedMax = highest > 0 ? highest * 1.04 : 0;
      if (lowest < 0) scale.suggestedMin = lowest * 1.1;
      scale.beginAtZero = true;
    }
    return scale;
  }

  function tooltipLabel(figure, item) {
    const point = item.raw;
    let text = " " + (figure.series.length > 1 ? item.dataset.label + ": " : "") + number(point.value);
    if (point.low !== undefined) text += "  (" + point.interval + ": " + number(point.low) + " to " + number(point.high) + ")";
    if (point.runs > 0) text += point.runs === 1 ? ", 1 run" : ", " + point.runs + " runs";
    return text;
  }

  function draw(figure) {
    const canvas = document.querySelector("#" + CSS.escape(figure.id) + " canvas");
    if (!canvas) return;
    const isLine = figure.kind === "lines";
    charts.push(new Chart(canvas, {
      type: isLine ? "line" : "bar",
      data: {
        labels: figure.x.categories || undefined,
        datasets: figure.series.map((series, index) => dataset(figure, series, index)),
      },
      plugins: [whiskers, legendRoom],
      options: {
        responsive: true,
        maintainAspectRatio: false,
        animation: false,
        interaction: { mode: isLine ? "nearest" : "index", intersect: false, axis: isLine ? "xy" : isLying(figure) ? "y" : "x" },
        indexAxis: isLying(figure) ? "y" : "x",
        scales: isLying(figure) ? { x: axis(figure, "y"), y: axis(figure, "x") } : { x: axis(figure, "x"), y: axis(figure, "y") },
        plugins: {
          legend: {
            display: figure.series.length > 1,
            align: "start",
            onClick: toggle,
            labels: { generateLabels: legendLabels, color: style("--ink"), usePointStyle: isLine, boxWidth: isLine ? 8 : 12, boxHeight: isLine ? 8 : 12, padding: 16, font: { size: 12.5 } },
          },
          tooltip: {
            backgroundColor: style("--ink"), titleColor: style("--card"), bodyColor: style("--card"),
            padding: 11, cornerRadius: 8, boxPadding: 5, usePointStyle: true, titleFont: { size: 12.5 }, bodyFont: { size: 12.5 },
            callbacks: {
              title: (items) => items.length === 0 ? "" : isLine ? figure.x.title + ": " + sizeText(items[0].raw.x) : items[0].label,
              label: (item) => tooltipLabel(figure, item),
            },
          },
        },
      },
    }));
  }

  function drawAll() {
    charts.splice(0).forEach((chart) => chart.destroy());
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    figures.forEach(draw);
  }

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
    drawAll();
  }
  function setTheme(theme) {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    showTheme();
  }
  themeButton.addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  systemDark.addEventListener("change", showTheme);

  let before = null;
  addEventListener("beforeprint", () => {
    before = { theme: root.dataset.theme, closed: [...document.querySelectorAll("#findings details:not([open]), details.table:not([open])")] };
    before.closed.forEach((details) => { details.open = true; });
    setTheme("light");
  });
  addEventListener("afterprint", () => {
    if (!before) return;
    before.closed.forEach((details) => { details.open = false; });
    setTheme(before.theme);
    before = null;
  });

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
