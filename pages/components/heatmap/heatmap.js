// The memory heat map: rows against time on a canvas, colour for bytes.
// component.py describes the block of bytes that comes in and what goes back.

const MAPS = new WeakMap(); // parent element -> Heatmap, so that an update finds what it drew before

export default function (component) {
  const { parentElement, data, setStateValue } = component;
  if (!MAPS.has(parentElement)) MAPS.set(parentElement, new Heatmap(parentElement));
  MAPS.get(parentElement).update(data, (picked) => setStateValue("picked", picked));
  return () => {
    MAPS.get(parentElement)?.destroy();
    MAPS.delete(parentElement);
  };
}

// ---------------------------------------------------------------------------------- incoming data

async function decode(data) {
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const headerLength = new DataView(buffer).getUint32(0, true);
  const view = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, headerLength)));
  const { rows, columns } = view;
  let offset = 4 + headerLength;
  view.edges = new Float32Array(buffer, offset, columns ? columns + 1 : 0);
  offset += view.edges.byteLength;
  view.totals = view.hasTotals ? new Float32Array(buffer, offset, columns) : null;
  offset += view.totals?.byteLength ?? 0;
  view.cells = new Uint8Array(buffer, offset, rows * columns);
  offset += view.cells.byteLength;
  view.density = view.hasDensity ? new Uint8Array(buffer, offset, columns) : null;
  view.rowOfKey = new Map(view.keys.map((key, row) => [key, row]));
  view.start = columns ? view.edges[0] : 0;
  view.end = columns ? view.edges[columns] : 0;
  return view;
}

/** The last position in an ascending sequence whose value is at most x; -1 if there is none. */
function lastAtMost(length, valueAt, x) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (valueAt(middle) <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

function columnAt(view, t) {
  const column = lastAtMost(view.columns + 1, (i) => view.edges[i], t);
  return clamp(column, 0, view.columns - 1);
}

const middleOf = (view, column) => (view.edges[column] + view.edges[column + 1]) / 2;

// ------------------------------------------------------------------------------------------- text

function threeDigits(x) {
  return x < 9.95 ? x.toFixed(1) : x.toFixed(0);
}

function bytesText(bytes) {
  if (bytes < 999.5) return `${Math.round(bytes)} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let size = bytes / 1000;
  let unit = 0;
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${threeDigits(size)} ${units[unit]}`;
}

/** The size of a colour index, by the same rule as ColourScale.to_bytes in Python. */
function sizeText(scale, index) {
  if (index === 0) return "nothing";
  if (scale.kind === "linear") return bytesText((scale.max * index) / 255);
  const size = bytesText(scale.min * (scale.max / scale.min) ** ((index - 1) / 254));
  return index === 1 ? `up to ${size}` : size;
}

/** A moment in words, as fine as `resolution` (seconds) makes sense: "250 ms", "1.3 s", "2 min 5 s". */
function timeText(t, resolution) {
  if (t === 0) return "0 s";
  if (Math.abs(t) < 1 && resolution < 0.1) return `${(t * 1000).toFixed(resolution < 0.001 ? 1 : 0)} ms`;
  const digits = clamp(Math.ceil(-Math.log10(resolution) - 1e-9), 0, 3);
  if (Math.abs(t) < (resolution < 1 ? 120 : 60)) return `${t.toFixed(digits)} s`;
  const whole = Math.round(t);
  const parts = [
    [Math.floor(whole / 3600), "h"],
    [Math.floor((whole % 3600) / 60), "min"],
    [whole % 60, "s"],
  ];
  return parts.filter(([n]) => n > 0).map(([n, unit]) => `${n} ${unit}`).join(" ");
}

function unitText(view, t) {
  const at = lastAtMost(view.unitMarks.length, (i) => view.unitMarks[i][0], t);
  if (!view.unitMarks.length) return "";
  if (at < 0) return `before the first ${view.unitTitle}`;
  const label = view.unitMarks[at][1];
  return /^\d+$/.test(label) ? `${view.unitTitle} ${label}` : label;
}

/** A label and its shorter forms. File and line tell sites apart, so they go last. */
function shorterLabels(label) {
  const [, folders, line, code] = /^(.*\/)?([^/]*:\d+)( in .*)$/.exec(label) ?? [];
  if (line === undefined) return [label];
  return [label, line + code, (folders ?? "") + line, line];
}

const TIME_STEPS = [
  0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30,
  60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400,
];

const GC_LINES_APART = 14; // pixels: closer lines would cover the cells between them

const ROUND_STEPS = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000];

/** "page 7", "page 8", … -> their numbers; null where the labels do not count on by one. */
function consecutiveNumbers(labels) {
  const numbers = labels.map((label) => Number(/(\d+)$/.exec(label)?.[1] ?? NaN));
  const counts = numbers.every((n, i) => n === numbers[0] + i);
  return counts && labels.length > 1 ? numbers : null;
}

// ----------------------------------------------------------------------------------------- colour

// Lightness, chroma and hue (OKLCH) from the smallest size to the largest. Lightness runs in equal
// steps away from the background, so that more always looks like more, also without colour vision.
const ANCHORS = {
  dark: [[0.36, 0.13, 292], [0.5, 0.2, 325], [0.65, 0.22, 372], [0.8, 0.165, 415], [0.97, 0.1, 463]],
  light: [[0.87, 0.1, 450], [0.76, 0.165, 416], [0.61, 0.21, 378], [0.43, 0.18, 330], [0.23, 0.11, 292]],
};

function oklch(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((x) => {
    const gamma = x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055;
    return Math.round(255 * clamp(gamma, 0, 1));
  });
}

/** 256 colours: `css` for the page, `packed` (alpha, blue, green, red) for image data; 0 is clear. */
function colourLookup(anchors) {
  const css = ["transparent"];
  const packed = new Uint32Array(256);
  for (let index = 1; index < 256; index += 1) {
    const place = ((index - 1) / 254) * (anchors.length - 1);
    const low = Math.min(Math.floor(place), anchors.length - 2);
    const mix = anchors[low].map((x, i) => x + (place - low) * (anchors[low + 1][i] - x));
    const [r, g, b] = oklch(...mix);
    css.push(`rgb(${r} ${g} ${b})`);
    packed[index] = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  }
  return { css, packed };
}

const LOOKUPS = { dark: colourLookup(ANCHORS.dark), light: colourLookup(ANCHORS.light) };

/** How bright a CSS colour is, 0 to 1; a canvas gives any opaque colour back as #rrggbb. */
function luminance(ink, colour) {
  ink.fillStyle = colour;
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(ink.fillStyle.slice(at, at + 2), 16) / 255);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// ------------------------------------------------------------------------------------ the elements

function element(name, className, parent) {
  const made = document.createElement(name);
  made.className = className;
  parent.append(made);
  return made;
}

function lieOn(made, { x, y, width, height }) {
  Object.assign(made.style, {
    left: `${x}px`,
    top: `${y}px`,
    width: `${width}px`,
    height: `${height}px`,
  });
}

const HELP =
  "Arrow keys move over the cells, Home and End go to the first and last moment, Page up and Page " +
  "down move ten rows. Enter selects, Shift with the arrows selects several rows, Escape clears.";

class Heatmap {
  constructor(parentElement) {
    this.root = element("div", "heatmap", parentElement);
    const header = element("div", "header", this.root);
    this.title = element("div", "title", header);
    this.legend = element("div", "legend", header);
    this.bar = element("div", "bar", this.legend);
    this.ticks = element("div", "ticks", this.legend);
    this.legend.setAttribute("aria-hidden", "true");
    this.stage = element("div", "stage", this.root);
    this.base = element("canvas", "base", this.stage); // the picture; drawn when data or size change
    this.top = element("canvas", "top", this.stage); // pointer, cursor, selection
    this.plot = element("div", "plot", this.stage); // lies on the cells: takes the focus
    this.total = element("div", "total", this.stage); // lies on the total, which it puts in words
    this.empty = element("div", "empty", this.stage);
    this.tooltip = element("div", "tooltip", this.stage);
    this.spoken = element("div", "spoken", this.root);
    this.cellBitmap = document.createElement("canvas");

    this.plot.tabIndex = 0;
    this.plot.setAttribute("role", "application");
    this.plot.setAttribute("aria-roledescription", "heat map");
    this.plot.setAttribute("aria-description", HELP);
    this.spoken.setAttribute("aria-live", "polite");
    this.total.setAttribute("role", "img");
    this.empty.textContent = "No data yet";
    this.plot.hidden = true;
    this.total.hidden = true;
    this.empty.hidden = true;
    this.tooltip.hidden = true;

    this.view = null;
    this.selection = null; // {row_key, row_to, t_s, column}
    this.cursor = null; // the keyboard's cell: {key, t}
    this.range = null; // rows being picked: {from, to, t} with row keys
    this.pointer = null; // {x, y} over the stage
    this.sequence = 0; // of the last selection reported to Python
    this.gutter = 0;

    this.stage.onpointerdown = (event) => this.onPointerDown(event);
    this.stage.onpointermove = (event) => this.onPointerMove(event);
    this.stage.onpointerup = () => this.onPointerUp();
    this.stage.onpointercancel = () => this.dropPointer();
    this.stage.onpointerleave = () => this.dropPointer();
    this.plot.onkeydown = (event) => this.onKeyDown(event);
    this.plot.onfocus = () => this.onFocus();
    this.plot.onblur = () => this.onBlur();
    this.resizes = new ResizeObserver(() => this.drawSoon("base"));
    this.resizes.observe(this.stage);
  }

  destroy() {
    this.destroyed = true;
    this.resizes.disconnect();
    cancelAnimationFrame(this.frame);
    this.root.remove();
  }

  async update(data, report) {
    this.report = report;
    if (data === this.data) {
      this.drawSoon("base"); // a new theme
      return;
    }
    this.data = data;
    let view;
    try {
      view = await decode(data);
    } catch (error) {
      this.empty.textContent = "The heat map could not be read. Reload the page.";
      this.empty.hidden = false;
      throw error;
    }
    if (this.destroyed || data !== this.data) return; // a newer update has overtaken this one
    this.view = view;
    // A view that was made before Python heard of our last selection does not undo it.
    if (view.sequence >= this.sequence) {
      this.sequence = view.sequence;
      this.selection = view.selection;
    }
    this.root.style.height = `${view.height}px`;
    this.title.textContent = view.title;
    const hasCells = view.rows > 0 && view.columns > 0;
    this.plot.hidden = !hasCells;
    this.empty.hidden = hasCells;
    this.legend.hidden = !hasCells;
    this.total.hidden = !hasCells || !view.totals;
    if (!this.total.hidden) this.total.setAttribute("aria-label", totalText(view));
    const span = timeText(view.end - view.start, (view.end - view.start) / 100 || 1);
    this.plot.setAttribute("aria-label", `${view.title}. ${view.rows} rows over ${span}.`);
    this.drawSoon("base");
  }

  select(selection) {
    this.selection = selection;
    this.sequence += 1;
    this.report({ sequence: this.sequence, cell: selection });
    this.drawSoon("top");
  }

  // ------------------------------------------------------------------------------------- geometry

  rowTop(row) {
    const { rows, yUp } = this.view;
    return this.area.y + ((yUp ? rows - 1 - row : row) * this.area.height) / rows;
  }

  /** The middle of a row, moved in a little at the edges, where its label would leave the map. */
  labelY(row) {
    const { area } = this;
    const middle = this.rowTop(row) + area.height / this.view.rows / 2;
    return clamp(middle, area.y + 5, area.y + area.height - 5);
  }

  rowAt(y) {
    const { rows, yUp } = this.view;
    const place = Math.floor(((y - this.area.y) / this.area.height) * rows);
    const fromTop = clamp(place, 0, rows - 1);
    return yUp ? rows - 1 - fromTop : fromTop;
  }

  xOf(t) {
    const { start, end } = this.view;
    return this.area.x + ((t - start) / (end - start)) * this.area.width;
  }

  timeAt(x) {
    const { start, end } = this.view;
    return start + clamp((x - this.area.x) / this.area.width, 0, 1) * (end - start);
  }

  /** The cell under a point; on a row's label, the row where it is largest. Null elsewhere. */
  cellAt({ x, y }) {
    const { area, view } = this;
    if (!area || y < area.y || y >= area.y + area.height || x > area.x + area.width) return null;
    const row = this.rowAt(y);
    if (x >= area.x) return { row, column: columnAt(view, this.timeAt(x)) };
    const cells = view.cells.subarray(row * view.columns, (row + 1) * view.columns);
    return { row, column: cells.indexOf(cells.reduce((a, b) => Math.max(a, b), 0)) };
  }

  /** The moment under a point on the total; null elsewhere. */
  momentAt({ x, y }) {
    const { totalBox: box } = this;
    if (!box || y < box.y || y >= box.y + box.height) return null;
    return x >= box.x && x <= box.x + box.width ? this.timeAt(x) : null;
  }

  /** How exact a moment on screen is: the seconds that a few pixels span. */
  get resolution() {
    return (4 * (this.view.end - this.view.start)) / this.area.width;
  }

  // ------------------------------------------------------------------------------------- pointer

  onPointerDown(event) {
    if (event.button !== 0 || !this.view || this.plot.hidden) return;
    this.track(event);
    const cell = this.cellAt(this.pointer);
    if (!cell) return;
    this.stage.setPointerCapture(event.pointerId);
    this.plot.classList.add("by-pointer"); // no focus ring for a click
    this.plot.focus({ preventScroll: true });
    event.preventDefault();
    const key = this.view.keys[cell.row];
    this.range = { from: key, to: key, t: middleOf(this.view, cell.column) };
    this.cursor = null;
    this.drawSoon("top");
  }

  onPointerMove(event) {
    if (!this.view || this.plot.hidden) return;
    this.track(event);
    if (this.range) this.range.to = this.view.keys[this.rowAt(this.pointer.y)];
    this.drawSoon("top");
  }

  onPointerUp() {
    if (this.range) this.selectRange();
  }

  dropPointer() {
    this.pointer = null;
    this.range = null;
    this.drawSoon("top");
  }

  track(event) {
    const box = this.stage.getBoundingClientRect();
    this.pointer = { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  selectRange() {
    const { from, to, t } = this.range;
    this.range = null;
    this.cursor = this.cursor && { key: to, t };
    const column = columnAt(this.view, t);
    this.select({
      row_key: from,
      row_to: to === from ? null : to,
      t_s: middleOf(this.view, column),
      column,
    });
  }

  // ------------------------------------------------------------------------------------ keyboard

  onFocus() {
    if (!this.plot.classList.contains("by-pointer")) this.moveCursor(0, 0, false);
  }

  onBlur() {
    this.range = null;
    // Another window in front is no reason to show the ring when this one comes back.
    if (document.hasFocus()) this.plot.classList.remove("by-pointer");
    this.drawSoon("top");
  }

  onKeyDown(event) {
    const { view } = this;
    this.plot.classList.remove("by-pointer");
    const up = view.yUp ? 1 : -1;
    const moves = {
      ArrowUp: [up, 0],
      ArrowDown: [-up, 0],
      PageUp: [10 * up, 0],
      PageDown: [-10 * up, 0],
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      Home: [0, -Infinity],
      End: [0, Infinity],
    };
    if (event.key in moves) this.moveCursor(...moves[event.key], event.shiftKey);
    else if (event.key === "Enter" || event.key === " ") this.pickCursor();
    else if (event.key === "Escape") this.clear();
    else return;
    event.preventDefault();
  }

  /** The cursor's cell; where there is none, the selected cell or the latest of the row in progress. */
  cursorCell() {
    const { view, selection } = this;
    const latest = { key: view.nowKey, t: view.end };
    const picked = selection && { key: selection.row_key, t: selection.t_s };
    const { key, t } = this.cursor ?? picked ?? latest;
    return { row: view.rowOfKey.get(key) ?? 0, column: columnAt(view, t) };
  }

  moveCursor(rows, columns, extend) {
    const { view } = this;
    const cell = this.cursorCell();
    const row = clamp(cell.row + rows, 0, view.rows - 1);
    const column = clamp(cell.column + columns, 0, view.columns - 1);
    const t = middleOf(view, column);
    this.cursor = { key: view.keys[row], t };
    if (extend) {
      this.range ??= { from: view.keys[cell.row], to: null, t };
      this.range.to = view.keys[row];
    } else {
      this.range = null;
    }
    this.pointer = null;
    this.spoken.textContent = this.cellText(row, column);
    this.drawSoon("top");
  }

  pickCursor() {
    const { row, column } = this.cursorCell();
    const key = this.view.keys[row];
    const t = middleOf(this.view, column);
    this.cursor = { key, t };
    this.range ??= { from: key, to: key, t };
    this.selectRange();
    this.spoken.textContent = `Selected: ${this.cellText(row, column)}`;
  }

  clear() {
    const nothingToClear = !this.selection;
    this.range = null;
    this.cursor = null;
    this.drawSoon("top");
    if (nothingToClear) return;
    this.select(null);
    this.spoken.textContent = "Selection cleared";
  }

  cellText(row, column) {
    const { view } = this;
    const t = middleOf(view, column);
    const size = sizeText(view.scale, view.cells[row * view.columns + column]);
    return [view.details[row], size, timeText(t, this.resolution), unitText(view, t)]
      .filter(Boolean)
      .join(", ");
  }

  // ------------------------------------------------------------------------------------- drawing

  /** Draw in the next frame; several wishes within a frame become one. */
  drawSoon(layer) {
    this.dirty = layer === "base" || this.dirty;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (this.destroyed || !this.view || this.plot.hidden) return this.clearCanvases();
      if (this.dirty) this.drawBase();
      this.dirty = false;
      return this.drawTop();
    });
  }

  clearCanvases() {
    for (const canvas of [this.base, this.top]) canvas.width = canvas.width; // resets the bitmap
    this.tooltip.hidden = true;
  }

  readTheme() {
    const style = getComputedStyle(this.root);
    const read = (name, fallback) => style.getPropertyValue(name).trim() || fallback;
    const background = read("--st-background-color", "#ffffff");
    const dark = luminance(this.base.getContext("2d"), background) < 0.5;
    this.theme = {
      lookup: dark ? LOOKUPS.dark : LOOKUPS.light,
      background,
      text: read("--st-text-color", dark ? "#fafafa" : "#31333f"),
      accent: read("--st-primary-color", "#ff4b4b"),
      font: style.fontFamily,
    };
  }

  /** A canvas's context in CSS pixels, cleared, with as many device pixels as the screen has. */
  prepare(canvas) {
    const ratio = window.devicePixelRatio || 1;
    const { width, height } = this.size;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = `11px ${this.theme.font}`;
    context.textBaseline = "middle";
    return context;
  }

  drawBase() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    if (width < 60 || height < 60) return;
    this.readTheme();
    if (this.size?.width !== width) this.gutter = 0;
    this.size = { width, height };
    const ink = this.prepare(this.base);
    this.layOut(ink);
    const { area, theme } = this;
    ink.fillStyle = theme.text;
    ink.globalAlpha = 0.04;
    ink.fillRect(area.x, area.y, area.width, area.height);
    ink.globalAlpha = 1;
    this.drawCells(ink);
    this.drawCollections(ink);
    this.drawRowLabels(ink);
    if (this.totalBox) {
      drawTotal(ink, { view: this.view, box: this.totalBox, xOf: (t) => this.xOf(t), theme });
    }
    this.drawUnitAxis(ink);
    this.drawTimeAxis(ink);
    this.drawLegend(ink);
  }

  /** Where the cells lie within the stage, and which rows carry their label. */
  layOut(ink) {
    const { view, size } = this;
    const top = (view.unitMarks.length ? 22 : 0) + (this.hasCollections ? 20 : 0) + 4;
    const below = view.totals ? TOTAL_GAP + TOTAL_HEIGHT : 0;
    const height = size.height - top - below - 24;
    this.labelled = this.rowsToLabel(height);
    const widest = Math.max(0, ...this.labelled.map((row) => ink.measureText(view.labels[row]).width));
    const wanted = Math.ceil((widest + 16) / 8) * 8;
    // Never narrower than before at this width: a live picture must not jump sideways.
    this.gutter = Math.max(this.gutter, clamp(wanted, 40, Math.max(96, size.width * 0.26)));
    const left = this.gutter + (view.yTitle ? 18 : 0);
    this.area = { x: left, y: top, width: size.width - left - 14, height };
    this.totalBox = view.totals && { ...this.area, y: top + height + TOTAL_GAP, height: TOTAL_HEIGHT };
    this.foot = top + height + below;
    lieOn(this.plot, this.area);
    if (this.totalBox) lieOn(this.total, this.totalBox);
  }

  get hasCollections() {
    return this.view.density !== null || this.view.gcLines.length > 0;
  }

  rowsToLabel(height) {
    const { rows, labels } = this.view;
    const closest = 14 / (height / rows); // rows that one label needs
    const all = [...labels.keys()];
    if (closest <= 1) return all;
    const step = ROUND_STEPS.find((each) => each >= closest) ?? Math.ceil(closest);
    const numbers = consecutiveNumbers(labels);
    return all.filter((row) => (numbers ? numbers[row] : row) % step === 0);
  }

  /** Cells as an image one screen pixel a column; where cells are finer than that, the largest wins. */
  drawCells(ink) {
    const { area, view } = this;
    const ratio = window.devicePixelRatio || 1;
    const wide = Math.max(1, Math.round(area.width * ratio));
    const high = Math.min(view.rows, Math.max(1, Math.round(area.height * ratio)));
    const bitmap = this.cellBitmap;
    if (!this.image || this.image.width !== wide || this.image.height !== high) {
      bitmap.width = wide;
      bitmap.height = high;
      this.image = bitmap.getContext("2d").createImageData(wide, high);
    }
    const pixels = new Uint32Array(this.image.data.buffer);
    const firsts = new Uint32Array(wide + 1); // the first column that each screen pixel shows
    for (let x = 0; x <= wide; x += 1) {
      firsts[x] = columnAt(view, view.start + (x / wide) * (view.end - view.start));
    }
    const line = new Uint8Array(view.columns);
    for (let y = 0; y < high; y += 1) {
      const [from, to] = [y, y + 1].map((edge) => Math.floor((edge * view.rows) / high));
      this.largestOfRows(line, from, to);
      for (let x = 0; x < wide; x += 1) {
        let largest = line[firsts[x]];
        for (let column = firsts[x] + 1; column < firsts[x + 1]; column += 1) {
          largest = Math.max(largest, line[column]);
        }
        pixels[y * wide + x] = this.theme.lookup.packed[largest];
      }
    }
    bitmap.getContext("2d").putImageData(this.image, 0, 0);
    ink.imageSmoothingEnabled = false;
    ink.drawImage(bitmap, area.x, area.y, area.width, area.height);
    if (area.height / view.rows >= 9) this.separateRows(ink);
  }

  /** Into `line`: for each column the largest cell of the rows from…to-1, counted from the top. */
  largestOfRows(line, from, to) {
    const { cells, columns, rows, yUp } = this.view;
    for (let fromTop = from; fromTop < to; fromTop += 1) {
      const offset = (yUp ? rows - 1 - fromTop : fromTop) * columns;
      if (fromTop === from) line.set(cells.subarray(offset, offset + columns));
      else for (let c = 0; c < columns; c += 1) line[c] = Math.max(line[c], cells[offset + c]);
    }
  }

  separateRows(ink) {
    const { area, view, theme } = this;
    ink.fillStyle = theme.background;
    for (let row = 1; row < view.rows; row += 1) {
      ink.fillRect(area.x, Math.round(area.y + (row * area.height) / view.rows) - 0.5, area.width, 1);
    }
  }

  /** Small collections as bars above the map; each large one as a mark, and a line through it. */
  drawCollections(ink) {
    const { area, view, theme } = this;
    if (!this.hasCollections) return;
    const foot = area.y - 4;
    ink.fillStyle = theme.text;
    ink.textAlign = "right";
    ink.globalAlpha = 0.72;
    ink.fillText("GC", area.x - 8, foot - 7);
    ink.globalAlpha = 0.16;
    ink.fillRect(area.x, foot, area.width, 1);
    ink.globalAlpha = 0.5;
    ink.beginPath(); // one shape, so that neighbours that touch do not show their seams
    view.density?.forEach((busy, column) => {
      if (busy === 0) return;
      const [left, right] = [this.xOf(view.edges[column]), this.xOf(view.edges[column + 1])];
      const tall = Math.max(1, (busy / 255) * 13);
      ink.rect(Math.floor(left), foot - tall, Math.ceil(right) - Math.floor(left), tall);
    });
    ink.fill();
    // The longest first: of those that crowd each other only it crosses the cells.
    const lines = [...view.gcLines].sort((a, b) => b[1] - a[1]);
    const crossing = [];
    for (const [t, pause] of lines) {
      const x = Math.round(this.xOf(t)) + 0.5;
      if (x < area.x || x > area.x + area.width) continue;
      const weight = 0.35 + 0.65 * Math.sqrt(pause / lines[0][1] || 0);
      this.drawGcMark(ink, x, foot, weight);
      if (crossing.some((other) => Math.abs(other - x) < GC_LINES_APART)) continue;
      crossing.push(x);
      this.drawGcLine(ink, x, foot, weight);
    }
    ink.globalAlpha = 1;
  }

  drawGcLine(ink, x, foot, weight) {
    const { area, theme } = this;
    const draw = (colour, alpha, width) => {
      ink.fillStyle = colour;
      ink.globalAlpha = alpha;
      ink.fillRect(x - width / 2, foot, width, area.y + area.height - foot);
    };
    // The line has the text's colour and an outline in the background's: one of them shows anywhere.
    draw(theme.background, 0.6 * weight, 3);
    draw(theme.text, 0.9 * weight, 1);
  }

  drawGcMark(ink, x, foot, weight) {
    ink.globalAlpha = 0.4 + 0.6 * weight;
    ink.fillStyle = this.theme.text;
    ink.beginPath();
    ink.moveTo(x - 3.5, foot - 5);
    ink.lineTo(x + 3.5, foot - 5);
    ink.lineTo(x, foot + 1);
    ink.fill();
  }

  drawRowLabels(ink) {
    const { area, view, theme } = this;
    ink.fillStyle = theme.text;
    ink.textAlign = "right";
    ink.globalAlpha = 0.8;
    for (const row of this.labelled) {
      ink.fillText(this.fitted(ink, view.labels[row]), area.x - 9, this.labelY(row));
    }
    ink.globalAlpha = 1;
    const nowRow = view.rowOfKey.get(view.nowKey);
    if (nowRow !== undefined) {
      const y = this.labelY(nowRow);
      ink.fillStyle = theme.accent;
      ink.beginPath();
      ink.moveTo(area.x - 7, y - 4.5);
      ink.lineTo(area.x - 1, y);
      ink.lineTo(area.x - 7, y + 4.5);
      ink.fill();
    }
    if (!view.yTitle) return;
    ink.save();
    ink.translate(8, area.y + area.height / 2);
    ink.rotate(-Math.PI / 2);
    ink.textAlign = "center";
    ink.globalAlpha = 0.72;
    ink.fillStyle = theme.text;
    ink.fillText(view.yTitle, 0, 0);
    ink.restore();
  }

  /** A label as long as there is room for: without its folders, then without its function. */
  fitted(ink, label) {
    const fits = (text) => ink.measureText(text).width <= this.gutter - 12;
    const shorter = shorterLabels(label);
    const found = shorter.find(fits);
    if (found !== undefined) return found;
    const last = shorter.at(-1);
    let from = 1;
    while (from < last.length && !fits(`…${last.slice(from)}`)) from += 1;
    return `…${last.slice(from)}`;
  }

  /** Ticks where units begin; labels with round numbers first, none over another. */
  drawUnitAxis(ink) {
    const { area, view, theme } = this;
    if (!view.unitMarks.length) return;
    const line = 20;
    ink.fillStyle = theme.text;
    ink.textAlign = "right";
    ink.globalAlpha = 0.72;
    ink.fillText(view.unitTitle, area.x - 8, line - 10);
    ink.globalAlpha = 0.16;
    ink.fillRect(area.x, line, area.width, 1);
    ink.globalAlpha = 0.45;
    let drawn = -Infinity;
    for (const [t] of view.unitMarks) {
      const x = this.xOf(t);
      if (x - drawn < 3 || x < area.x - 0.5 || x > area.x + area.width) continue;
      ink.fillRect(Math.round(x), line - 3, 1, 4);
      drawn = x;
    }
    ink.globalAlpha = 0.8;
    ink.textAlign = "center";
    for (const { label, x } of this.unitLabels(ink)) ink.fillText(label, x, line - 11);
    ink.globalAlpha = 1;
  }

  /** The first and slow units get their label, then ever finer round numbers while most of them fit. */
  unitLabels(ink) {
    const { area, view } = this;
    const marks = view.unitMarks.map(([t, label], i) => {
      const number = Number(/(\d+)$/.exec(label)?.[1] ?? i);
      const half = ink.measureText(label).width / 2;
      const lasts = (view.unitMarks[i + 1]?.[0] ?? t) - t;
      return { label, number, half, lasts, x: this.xOf(t) };
    });
    const placed = [];
    const place = (mark) => {
      const inside = mark.x >= area.x - 4 && mark.x <= area.x + area.width + 4;
      const free = placed.every((other) => Math.abs(other.x - mark.x) >= other.half + mark.half + 9);
      if (inside && free) placed.push(mark);
    };
    place(marks[0]);
    const usual = [...marks].sort((a, b) => a.lasts - b.lasts)[marks.length >> 1].lasts;
    marks.filter((mark) => mark.lasts > 4 * usual).sort((a, b) => b.lasts - a.lasts).forEach(place);
    for (const step of [10000, 5000, 1000, 500, 100, 50, 10, 5, 1]) {
      const before = placed.length;
      const fresh = marks.filter((mark) => mark.number % step === 0 && !placed.includes(mark));
      fresh.forEach(place);
      if (placed.length - before < 0.6 * fresh.length) return placed.slice(0, before);
    }
    return placed;
  }

  drawTimeAxis(ink) {
    const { area, view, theme } = this;
    const span = view.end - view.start;
    const wanted = (span / area.width) * 78; // seconds that one label needs
    const step = TIME_STEPS.find((each) => each >= wanted) ?? Math.ceil(wanted / 86400) * 86400;
    const { foot } = this;
    ink.fillStyle = theme.text;
    ink.textAlign = "center";
    for (let i = Math.ceil(view.start / step - 1e-6); i * step <= view.end + step * 1e-6; i += 1) {
      const x = this.xOf(i * step);
      const label = timeText(i * step, step);
      const half = ink.measureText(label).width / 2;
      ink.globalAlpha = 0.45;
      ink.fillRect(Math.round(x), foot + 1, 1, 5);
      ink.globalAlpha = 0.8;
      ink.fillText(label, clamp(x, area.x + half - 4, this.size.width - half - 1), foot + 15);
    }
    ink.globalAlpha = 1;
  }

  drawLegend(ink) {
    const { view, theme } = this;
    const stops = Array.from({ length: 17 }, (_, i) => theme.lookup.css[1 + Math.round((i * 254) / 16)]);
    this.bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
    const width = this.bar.clientWidth;
    const placed = [];
    const [first, ...others] = view.legend;
    for (const [index, text] of [others.pop(), first, ...others].filter(Boolean)) {
      const wide = ink.measureText(text).width + 2;
      const left = clamp(((index - 1) / 254) * width - wide / 2, 0, width - wide);
      const free = placed.every((other) => left >= other.right + 8 || left + wide + 8 <= other.left);
      if (free) placed.push({ text, left, right: left + wide });
    }
    this.ticks.replaceChildren();
    for (const { text, left } of placed) {
      const tick = element("span", "tick", this.ticks);
      tick.textContent = text;
      tick.style.left = `${left}px`;
    }
  }

  // --------------------------------------------------------------- pointer, cursor and selection

  drawTop() {
    if (!this.area) return;
    const ink = this.prepare(this.top);
    if (this.range) this.drawRange(ink, this.range.from, this.range.to, this.range.t);
    else if (this.selection) {
      const { row_key: from, row_to: to, t_s: t } = this.selection;
      this.drawRange(ink, from, to ?? from, t);
    }
    const hovered = this.pointer && this.cellAt(this.pointer);
    const moment = this.pointer && this.momentAt(this.pointer);
    const focused = this.cursor && this.plot.matches(":focus") ? this.cursorCell() : null;
    if (hovered) this.drawCrosshair(ink, hovered);
    if (focused) this.drawCursor(ink, focused);
    if (moment !== null) this.drawMoment(ink, this.pointer.x);
    if (moment !== null) this.showTotal(moment);
    else this.showTooltip(hovered ?? focused, hovered ? this.pointer : null);
  }

  /** A line through the cells and the total. */
  drawMoment(ink, x) {
    ink.fillStyle = this.theme.text;
    ink.globalAlpha = 0.4;
    ink.fillRect(x - 0.5, this.area.y, 1, this.foot - this.area.y);
    ink.globalAlpha = 1;
  }

  /** A box on the canvas that shows on every colour: dark around bright. */
  outline(ink, x, y, width, height, colour) {
    ink.globalAlpha = 0.55;
    ink.strokeStyle = this.theme.background;
    ink.lineWidth = 4;
    ink.strokeRect(x, y, width, height);
    ink.globalAlpha = 1;
    ink.strokeStyle = colour;
    ink.lineWidth = 2;
    ink.strokeRect(x, y, width, height);
  }

  drawRange(ink, from, to, t) {
    const { area, view, theme } = this;
    const rows = [view.rowOfKey.get(from), view.rowOfKey.get(to)].filter((row) => row !== undefined);
    if (!rows.length) return;
    const tops = rows.map((row) => this.rowTop(row));
    const y = Math.min(...tops);
    const height = Math.max(...tops) + area.height / view.rows - y;
    // Lines above and below, not over the rows: what is selected keeps its colours.
    for (const [colour, alpha, apart] of [[theme.background, 0.7, 3], [theme.accent, 1, 1.5]]) {
      ink.fillStyle = colour;
      ink.globalAlpha = alpha;
      ink.fillRect(area.x, y - apart, area.width, apart);
      ink.fillRect(area.x, y + height, area.width, apart);
    }
    ink.globalAlpha = 1;
    ink.fillRect(area.x - 3, y - 1.5, 3, height + 3);
    const box = this.cellBox(rows[0], columnAt(view, t));
    this.outline(ink, box.x, box.y, box.width, box.height, theme.text);
    this.drawPill(ink, rows[0], theme.accent);
    if (rows[1] !== undefined && rows[1] !== rows[0]) this.drawPill(ink, rows[1], theme.accent);
  }

  cellBox(row, column) {
    const { area, view } = this;
    const x = this.xOf(view.edges[column]);
    const width = Math.max(this.xOf(view.edges[column + 1]) - x, 5);
    const height = Math.max(area.height / view.rows, 5);
    const middle = this.rowTop(row) + area.height / view.rows / 2;
    return { x, y: middle - height / 2, width, height };
  }

  drawCrosshair(ink, { row, column }) {
    const { area, theme } = this;
    const box = this.cellBox(row, column);
    ink.fillStyle = theme.text;
    ink.globalAlpha = 0.4;
    ink.fillRect(area.x, box.y + box.height / 2 - 0.5, area.width, 1);
    ink.globalAlpha = 1;
    this.drawMoment(ink, box.x + box.width / 2);
    this.drawPill(ink, row, theme.text);
  }

  drawCursor(ink, { row, column }) {
    const box = this.cellBox(row, column);
    this.outline(ink, box.x - 1, box.y - 1, box.width + 2, box.height + 2, this.theme.text);
    this.drawPill(ink, row, this.theme.text);
  }

  /** A row's label on a plate in the gutter: it is readable also where labels are thinned out. */
  drawPill(ink, row, colour) {
    const { area, view, theme } = this;
    const label = this.fitted(ink, view.labels[row]);
    const wide = ink.measureText(label).width + 10;
    const y = this.labelY(row);
    ink.fillStyle = theme.background;
    for (const other of this.labelled) {
      const otherY = this.labelY(other);
      if (Math.abs(otherY - y) < 15) ink.fillRect(area.x - this.gutter, otherY - 8, this.gutter - 8, 16);
    }
    ink.fillStyle = colour;
    ink.beginPath();
    ink.roundRect(area.x - 4 - wide, y - 8, wide, 16, 4);
    ink.fill();
    ink.fillStyle = luminance(ink, colour) < 0.5 ? "#ffffff" : "#000000";
    ink.textAlign = "right";
    ink.fillText(label, area.x - 9, y + 0.5);
  }

  // ------------------------------------------------------------------------------------- tooltip

  showTooltip(cell, pointer) {
    const { tooltip, view } = this;
    tooltip.hidden = !cell;
    if (tooltip.hidden) return;
    const { row, column } = cell;
    const t = pointer && pointer.x >= this.area.x ? this.timeAt(pointer.x) : middleOf(view, column);
    const index = view.cells[row * view.columns + column];
    tooltip.replaceChildren();
    const value = element("div", "value", tooltip);
    element("span", "swatch", value).style.background = this.theme.lookup.css[index];
    value.append(sizeText(view.scale, index));
    element("div", "detail", tooltip).textContent = view.details[row];
    element("div", "moment", tooltip).textContent = this.momentText(t);
    if (view.totals) this.addTotal(t);
    const collection = this.collectionText(this.xOf(t));
    if (collection) element("div", "collection", tooltip).textContent = collection;
    const box = this.cellBox(row, column);
    this.placeTooltip(pointer ?? { x: box.x + box.width, y: box.y + box.height });
  }

  /** Of the total at one moment. */
  showTotal(t) {
    const { tooltip } = this;
    tooltip.hidden = false;
    tooltip.replaceChildren();
    this.addTotal(t);
    element("div", "moment", tooltip).textContent = this.momentText(t);
    this.placeTooltip(this.pointer);
  }

  addTotal(t) {
    const size = bytesText(this.view.totals[columnAt(this.view, t)]);
    element("div", "detail", this.tooltip).textContent = `in all ${size}`;
  }

  momentText(t) {
    const unit = unitText(this.view, t);
    const moment = `at ${timeText(t, this.resolution)}`;
    return unit ? `${moment} · ${unit}` : moment;
  }

  placeTooltip(at) {
    const { tooltip, size } = this;
    const { offsetWidth: wide, offsetHeight: high } = tooltip;
    const left = at.x + 16 + wide > size.width ? at.x - 16 - wide : at.x + 16;
    const top = at.y + 16 + high > size.height ? at.y - 12 - high : at.y + 16;
    const [x, y] = [clamp(left, 0, size.width - wide), clamp(top, 0, size.height - high)];
    tooltip.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  }

  /** What the line within four pixels says; of several, the one with the longest pause. */
  collectionText(x) {
    const near = this.view.gcLines.filter(([t]) => Math.abs(this.xOf(t) - x) <= 4);
    if (!near.length) return "";
    const longest = near.reduce((a, b) => (b[1] > a[1] ? b : a));
    return near.length > 1 ? `${longest[3]} (and ${near.length - 1} more here)` : longest[3];
  }
}
