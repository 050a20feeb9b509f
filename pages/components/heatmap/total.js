// The total: a small chart below the cells, on their axis of time. component.py puts this file
// before heatmap.js; both are one module in the browser.

const TOTAL_HEIGHT = 72; // pixels, and what stands between the cells and it
const TOTAL_GAP = 16;
const TOTAL_COLOUR = "rgb(64,132,214)"; // the blue of theme.py, as legible on white as on black

/** Round sizes up to the highest, two to five of them: what the scale at the left says. */
function roundSizes(highest) {
  const power = 10 ** Math.floor(Math.log10(highest));
  const step = [0.5, 1, 2, 5].map((m) => m * power).find((each) => highest / each < 4);
  return Array.from({ length: Math.floor(highest / step) }, (_, i) => (i + 1) * step);
}

/** What the total comes to in words, for those who do not see it. */
function totalText(view) {
  const highest = view.totals.reduce((a, b) => Math.max(a, b), 0);
  const last = view.totals[view.columns - 1];
  return `All that is alive, over time: ${bytesText(highest)} at most, ${bytesText(last)} at the end.`;
}

/** Draw it into `box`; `xOf` gives the place of a moment, as for the cells. */
function drawTotal(ink, { view, box, xOf, theme }) {
  const highest = Math.max(1, view.totals.reduce((a, b) => Math.max(a, b), 0));
  const foot = box.y + box.height;
  const yOf = (size) => foot - (size / highest) * box.height;
  ink.fillStyle = theme.text;
  ink.globalAlpha = 0.04;
  ink.fillRect(box.x, box.y, box.width, box.height);

  // The value of a column holds from edge to edge.
  const steps = new Path2D();
  view.totals.forEach((size, column) => {
    steps.lineTo(xOf(view.edges[column]), yOf(size));
    steps.lineTo(xOf(view.edges[column + 1]), yOf(size));
  });
  const filled = new Path2D(steps);
  filled.lineTo(box.x + box.width, foot);
  filled.lineTo(box.x, foot);
  ink.fillStyle = TOTAL_COLOUR;
  ink.strokeStyle = TOTAL_COLOUR;
  ink.lineWidth = 1.5;
  ink.globalAlpha = 0.25;
  ink.fill(filled);
  ink.globalAlpha = 1;
  ink.stroke(steps);

  ink.textAlign = "right";
  ink.fillStyle = theme.text;
  for (const size of [0, ...roundSizes(highest)]) {
    const y = Math.round(yOf(size));
    ink.globalAlpha = 0.14;
    ink.fillRect(box.x, y, box.width, 1);
    ink.globalAlpha = 0.8;
    ink.fillText(size ? bytesText(size).replace(".0", "") : "0", box.x - 9, y);
  }
  ink.save();
  ink.translate(8, box.y + box.height / 2);
  ink.rotate(-Math.PI / 2);
  ink.textAlign = "center";
  ink.globalAlpha = 0.72;
  ink.fillText("in all", 0, 0);
  ink.restore();
  ink.globalAlpha = 1;
}
