// The graph of references: root left, suspect right. component.py describes the data.

const GRAPHS = new WeakMap(); // parent element -> Graph, so that an update finds what it drew before

export default function (component) {
  const { parentElement, data } = component;
  if (!GRAPHS.has(parentElement)) GRAPHS.set(parentElement, new Graph(parentElement));
  GRAPHS.get(parentElement).update(data);
  return () => {
    GRAPHS.get(parentElement)?.destroy();
    GRAPHS.delete(parentElement);
  };
}

const BOX = { least: 94, most: 180, height: 58, across: 24, down: 24, edge: 14 };
const HELP =
  "Tab enters the graph; arrow keys go from object to object. Enter shows what refers to an object " +
  "and what it refers to, or hides it again. Shift with the left arrow opens its referrers only, " +
  "Shift with the right arrow what it refers to.";

function element(tag, className, parent, text) {
  const made = document.createElement(tag);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}

function shape(tag, attributes, parent, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}

class Graph {
  constructor(parentElement) {
    this.root = element("section", "holders", parentElement);
    this.title = element("div", "title", this.root);
    this.stage = element("div", "stage", this.root);
    this.svg = shape("svg", { role: "application", "aria-roledescription": "graph" }, this.stage);
    this.svg.setAttribute("aria-description", HELP);
    const legend = element("div", "legend", this.root);
    element("span", "key wrong", legend, "cut here");
    element("span", "key", legend, "refers to");
    element("span", "hint", legend, "Click an object, or its +, to see more of what stands around it.");
    this.panel = element("aside", "panel", this.root);
    this.panel.setAttribute("aria-label", "About the selected object");
    this.spoken = element("div", "spoken", this.root);
    this.spoken.setAttribute("aria-live", "polite");
    this.ink = document.createElement("canvas").getContext("2d");
    this.svg.onkeydown = (event) => this.onKeyDown(event);
    this.resizes = new ResizeObserver(() => this.drawSoon());
    this.resizes.observe(this.stage);
  }

  destroy() {
    this.resizes.disconnect();
    cancelAnimationFrame(this.frame);
    this.root.remove();
  }

  update(data) {
    if (this.graph?.key === data.key && this.graph.edges.length === data.edges.length) return;
    this.graph = indexed(data);
    this.opened = []; // [id, side], in the order in which they were opened
    this.selected = data.chain.at(-1);
    this.title.textContent = data.title;
    this.svg.setAttribute("aria-label", `${data.title}. ${data.words}`);
    this.drawSoon();
  }

  drawSoon() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  // -------------------------------------------------------------------------------------- opening

  isOpen(id, side) {
    return this.opened.some(([other, of]) => other === id && of === side);
  }

  toggle(id, side) {
    if (this.isOpen(id, side)) this.opened = this.opened.filter(([a, b]) => a !== id || b !== side);
    else this.opened.push([id, side]);
  }

  /** What a click on a box does: it is selected, and what stands around it opens or closes. */
  pick(id) {
    const sides = Object.keys(SIDES).filter((side) => this.canToggle(id, side));
    const allOpen = sides.length && sides.every((side) => this.isOpen(id, side));
    sides.filter((side) => allOpen || !this.isOpen(id, side)).forEach((side) => this.toggle(id, side));
    this.choose(id);
  }

  canToggle(id, side) {
    return this.isOpen(id, side) || hiddenOn(this.shown, this.graph.nodes.get(id), side) > 0;
  }

  pickSide(id, side) {
    if (this.canToggle(id, side)) this.toggle(id, side);
    this.choose(id);
  }

  choose(id) {
    const before = this.shown.size;
    this.selected = id;
    this.draw();
    const more = this.shown.size - before;
    const change = more > 0 ? `${more} more shown` : more < 0 ? `${-more} hidden` : "";
    this.spoken.textContent = change;
    this.focus(id);
  }

  focus(id) {
    const box = this.svg.querySelector(`[data-id="${id}"]`);
    box?.focus({ preventScroll: true });
    box?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  onKeyDown(event) {
    const at = this.shown.get(this.selected);
    if (event.key === "Enter" || event.key === " ") this.pick(this.selected);
    else if (event.shiftKey && event.key === "ArrowLeft") this.pickSide(this.selected, "holders");
    else if (event.shiftKey && event.key === "ArrowRight") this.pickSide(this.selected, "held");
    else if (event.key === "ArrowLeft") this.step(at, -1, 0);
    else if (event.key === "ArrowRight") this.step(at, 1, 0);
    else if (event.key === "ArrowUp") this.step(at, 0, -1);
    else if (event.key === "ArrowDown") this.step(at, 0, 1);
    else return;
    event.preventDefault();
  }

  /** To the nearest box in that direction: in the next column, or above or below in this one. */
  step(at, columns, rows) {
    const distance = (box) => Math.abs(box.row - at.row) + Math.abs(box.column - at.column);
    const ahead = [...this.shown.values()].filter((box) =>
      columns ? box.column === at.column + columns : box.column === at.column && (box.row - at.row) * rows > 0,
    );
    ahead.sort((a, b) => distance(a) - distance(b));
    if (ahead.length) this.choose(ahead[0].node.id);
  }

  // -------------------------------------------------------------------------------------- drawing

  draw() {
    if (!this.graph || !this.stage.clientWidth) return;
    this.shown = arrange(this.graph, this.opened);
    if (!this.shown.has(this.selected)) this.selected = this.graph.chain.at(-1);
    const boxes = [...this.shown.values()];
    const columns = Math.max(...boxes.map((box) => box.column)) + 1;
    const rows = Math.max(...boxes.map((box) => box.row)) + 1;
    const room = (this.stage.clientWidth - 2 * BOX.edge + BOX.across) / columns - BOX.across;
    this.wide = Math.min(BOX.most, Math.max(BOX.least, Math.floor(room)));
    const width = columns * (this.wide + BOX.across) - BOX.across + 2 * BOX.edge;
    const height = rows * (BOX.height + BOX.down) + 2 * BOX.edge;
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", height);
    const hadFocus = this.svg.contains(this.root.getRootNode().activeElement);
    this.ink.font = `600 12px ${getComputedStyle(this.root).fontFamily}`;
    this.svg.replaceChildren();
    const visible = (edge) => this.shown.has(edge.holder) && this.shown.has(edge.held);
    const drawn = this.graph.edges.filter(visible);
    drawn.sort((a, b) => a.wrong - b.wrong).forEach((edge) => this.drawEdge(edge)); // wrong ones on top
    boxes.sort((a, b) => a.column - b.column || a.row - b.row).forEach((box) => this.drawBox(box));
    this.describe();
    if (hadFocus) this.focus(this.selected); // the box that had it is a new one now
  }

  corner({ column, row }) {
    return {
      x: BOX.edge + column * (this.wide + BOX.across),
      y: BOX.edge + row * (BOX.height + BOX.down),
    };
  }

  drawEdge(edge) {
    const from = this.corner(this.shown.get(edge.holder));
    const to = this.corner(this.shown.get(edge.held));
    const [x1, y1] = [from.x + this.wide, from.y + BOX.height / 2];
    const [x2, y2] = [to.x - 1, to.y + BOX.height / 2];
    const bend = Math.max(BOX.across / 2, Math.abs(x2 - x1) / 3);
    const path = `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2 - 6},${y2}`;
    const inChain = this.isInChain(edge);
    const kind = edge.wrong ? "edge wrong" : inChain ? "edge chain" : "edge";
    const group = shape("g", { class: kind }, this.svg);
    shape("path", { d: path, class: "line" }, group);
    shape("path", { d: `M${x2 - 7},${y2 - 4} L${x2},${y2} L${x2 - 7},${y2 + 4} Z`, class: "tip" }, group);
    const how = edge.label ? `refers to it as ${edge.label}` : "refers to it";
    shape("title", {}, group, edge.wrong ? `${how}: a reference to cut` : how);
  }

  isInChain(edge) {
    const place = this.graph.chain.indexOf(edge.holder);
    return place >= 0 && this.graph.chain[place + 1] === edge.held;
  }

  drawBox(box) {
    const { node, via } = box;
    const { x, y } = this.corner(box);
    const classes = ["box", node.root && "root", via?.wrong && "wrong"];
    if (node.id === this.selected) classes.push("selected");
    if (node.id === this.graph.chain.at(-1)) classes.push("suspect");
    const group = shape("g", { class: classes.filter(Boolean).join(" ") }, this.svg);
    group.setAttribute("transform", `translate(${x},${y})`);
    group.setAttribute("data-id", node.id);
    group.setAttribute("role", "button");
    group.setAttribute("tabindex", node.id === this.selected ? "0" : "-1");
    group.setAttribute("aria-label", this.spokenName(box));
    group.setAttribute("aria-expanded", Object.keys(SIDES).some((side) => this.isOpen(node.id, side)));
    group.onclick = () => this.pick(node.id);
    shape("rect", { class: "plate", width: this.wide, height: BOX.height, rx: 6 }, group);
    const lines = [[this.howText(box), "how", 14], [node.title, "what", 30], [node.note, "note", 45]];
    for (const [text, className, top] of lines) {
      if (text) shape("text", { class: className, x: 10, y: top }, group, this.fitted(text));
    }
    shape("title", {}, group, [this.howText(box), node.title, node.note].filter(Boolean).join("\n"));
    for (const side of Object.keys(SIDES)) this.drawHandle(group, node, side);
  }

  /** How the object beside it in the chain refers to it, or it to the one that brought it in. */
  howText({ node, via }) {
    if (!via) return node.lead;
    return via.held === node.id ? via.label : via.label && `its ${via.label} →`;
  }

  drawHandle(group, node, side) {
    if (!this.canToggle(node.id, side)) return;
    const open = this.isOpen(node.id, side);
    const count = hiddenOn(this.shown, node, side);
    const text = open ? "−" : `+${count}`;
    const wide = Math.max(17, 8 + 7 * text.length);
    const middle = side === "holders" ? wide / 2 + 8 : this.wide - wide / 2 - 8;
    const what = side === "holders" ? "what refers to it" : "what it refers to";
    const handle = shape("g", { class: "handle", transform: `translate(${middle},${BOX.height + 2})` }, group);
    shape("rect", { x: -wide / 2, y: -8.5, width: wide, height: 17, rx: 8.5 }, handle);
    shape("text", { x: 0, y: 4 }, handle, text);
    shape("title", {}, handle, open ? `Hide ${what}` : `Show ${what} (${count})`);
    handle.onclick = (event) => {
      event.stopPropagation();
      this.pickSide(node.id, side);
    };
  }

  spokenName({ node, via }) {
    const parts = [node.lead, node.title, via && via.held === node.id && via.label && `held as ${via.label}`, node.note];
    if (node.id === this.graph.chain.at(-1)) parts.push("the suspect's object");
    if (via?.wrong) parts.push("the reference to it is one to cut");
    for (const side of Object.keys(SIDES)) {
      const hidden = hiddenOn(this.shown, node, side);
      if (hidden) parts.push(`${hidden} more ${side === "held" ? "that it refers to" : "that refer to it"}`);
    }
    return parts.filter(Boolean).join(", ");
  }

  fitted(text) {
    const room = this.wide - 18;
    if (this.ink.measureText(text).width <= room) return text;
    let kept = text.length - 1;
    while (kept > 1 && this.ink.measureText(`${text.slice(0, kept)}…`).width > room) kept -= 1;
    return `${text.slice(0, kept)}…`;
  }

  // ---------------------------------------------------------------------------- the selected object

  describe() {
    const { node, via } = this.shown.get(this.selected);
    this.panel.replaceChildren();
    const about = element("div", "about", this.panel);
    element("div", "name", about, [node.lead, node.title].filter(Boolean).join(" "));
    const facts = element("dl", "", about);
    const held = via && via.held === node.id && via.label ? [["Held as", via.label]] : [];
    for (const [name, value] of [...held, ...node.facts]) {
      element("dt", "", facts, name);
      element("dd", "", facts, value);
    }
    if (via?.wrong) element("div", "warning", about, "Cut the reference to it: its unit is over.");
    for (const side of Object.keys(SIDES)) this.addButton(about, node, side);
    const birth = element("div", "birth", this.panel);
    const stack = this.graph.stacks[node.stack];
    const heading = stack ? "Allocated at, innermost line first" : "No sample tells where it was allocated.";
    element("div", "heading", birth, heading);
    if (!stack) return;
    const list = element("ol", "stack", birth);
    for (const line of stack) element("li", "", list, line);
  }

  addButton(parent, node, side) {
    if (!this.canToggle(node.id, side)) return;
    const what = side === "holders" ? "what refers to it" : "what it refers to";
    const open = this.isOpen(node.id, side);
    const text = open ? `Hide ${what}` : `Show ${what} (${hiddenOn(this.shown, node, side)})`;
    const button = element("button", "more", parent, text);
    button.type = "button";
    button.onclick = () => this.pickSide(node.id, side);
  }
}
