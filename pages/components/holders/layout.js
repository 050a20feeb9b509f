// Which objects are shown, and where: columns follow the references from left to right.

const SIDES = { holders: -1, held: 1 };

/** The data with what the drawing asks of it: nodes by id, and each node's references by side. */
function indexed(data) {
  const nodes = new Map(
    data.nodes.map(([id, lead, title, note, root, facts, stack]) => [
      id,
      { id, lead, title, note, root, facts, stack, holders: [], held: [] },
    ]),
  );
  const edges = data.edges.map(([holder, held, label, wrong]) => ({ holder, held, label, wrong }));
  for (const edge of edges) {
    nodes.get(edge.holder).held.push(edge);
    nodes.get(edge.held).holders.push(edge);
  }
  return { ...data, nodes, edges };
}

const otherEnd = (edge, side) => (side === "held" ? edge.held : edge.holder);

/**
 * The shown objects by id, each with its column, row and the edge that brought it in.
 * `opened` lists [id, side] in the order in which the reader opened them; what hangs on something
 * that is not shown any more is not shown either.
 */
function arrange(graph, opened) {
  const shown = new Map();
  const taken = new Set();
  const place = (id, column, row, via, parent) => {
    let free = row;
    while (taken.has(`${column}/${free}`)) free += 1;
    taken.add(`${column}/${free}`);
    shown.set(id, { node: graph.nodes.get(id), column, row: free, via, parent });
  };
  graph.chain.forEach((id, column) => {
    const above = graph.chain[column - 1];
    const via = graph.edges.find((edge) => edge.holder === above && edge.held === id) ?? null;
    if (!shown.has(id)) place(id, column, 0, via, above ?? null);
  });
  for (const [id, side] of opened) {
    const from = shown.get(id);
    if (!from) continue;
    for (const edge of from.node[side]) {
      const other = otherEnd(edge, side);
      if (!shown.has(other)) place(other, from.column + SIDES[side], from.row, edge, id);
    }
  }
  const first = Math.min(...[...shown.values()].map((box) => box.column));
  for (const box of shown.values()) box.column -= first;
  return shown;
}

/** How many references on that side lead to something that is not shown. */
function hiddenOn(shown, node, side) {
  return new Set(node[side].map((edge) => otherEnd(edge, side)).filter((id) => !shown.has(id))).size;
}
