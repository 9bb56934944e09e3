// What a person sees of things and questions. Texts go in as text, never as HTML.
const KEYS = {
  s: "same",
  arrowleft: "same",
  d: "different",
  arrowright: "different",
  u: "unsure",
  arrowdown: "unsure",
};
const MATCH_KEYS = { n: "none", u: "unsure", arrowdown: "unsure" };
const NEARER_KEYS = { u: "unsure", arrowdown: "unsure" };
const STEPS = { arrowleft: -1, arrowup: -1, arrowright: 1, arrowdown: 1 };
// A key that was used, and is no answer.
export const USED = Symbol("used");
const DRAG_PX = 6; // a shorter way is a click
const MANY_WORDS = 8; // longer texts that have less than this in common are not marked: all of it would be
const LEAST_COMMON = 0.25;
const WIDEST = 3; // standard deviations that fill a bar
const MOST_IN_CARD = 6; // fields; more of them stand in a table
const FIRST_VIEW = 12; // choices that are shown before one searches

const spoken = { texts: {}, language: "en", plurals: new Intl.PluralRules("en") };

export function speak(language, texts) {
  Object.assign(spoken, { texts, language, plurals: new Intl.PluralRules(language) });
}

export const number = (value, digits = 0) =>
  value.toLocaleString(spoken.language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
export const percent = (share, digits = 0) =>
  share === null
    ? "–"
    : share.toLocaleString(spoken.language, {
        style: "percent",
        minimumFractionDigits: digits,
        maximumFractionDigits: digits,
      });

// A text of the page in the language that is spoken; `n` chooses between one and many.
export function t(key, values = {}) {
  let text = spoken.texts[key] ?? key;
  if (typeof text === "object") text = text[spoken.plurals.select(values.n)] ?? text.other;
  return text.replace(/\{(\w+)\}/g, (_, name) =>
    typeof values[name] === "number" ? number(values[name]) : values[name],
  );
}

// An element with attributes (on... are listeners) and children: texts or elements.
export function make(tag, attributes = {}, ...children) {
  const drawn = ["svg", "rect"].includes(tag);
  const element = drawn ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const bar = (share, label = null) =>
  make(
    "svg",
    {
      class: "bar",
      viewBox: "0 0 100 10",
      preserveAspectRatio: "none",
      role: label && "img",
      "aria-label": label,
      "aria-hidden": label ? null : "true",
    },
    make("rect", { class: "ground", width: 100, height: 10, rx: 2 }),
    make("rect", { width: 100 * Math.min(share, 1), height: 10, rx: 2 }),
  );

// A window before all else; Escape, its button and a click beside it close it.
export function openDialog(near, title, ...children) {
  const close = make(
    "button",
    { type: "button", class: "close", "aria-label": t("close"), onclick: () => dialog.close() },
    "×",
  );
  const dialog = make(
    "dialog",
    {
      "aria-label": title,
      onclose: () => dialog.remove(),
      onclick: (event) => event.target === dialog && dialog.close(),
    },
    make("div", { class: "window" }, close, ...children),
  );
  near.closest(".sdulearn").append(dialog);
  dialog.showModal();
  return dialog;
}

// ---- words that differ

const bare = (word) => word.toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "") || word;

// A text with the words marked that the other one lacks; of long texts with little in common nothing is.
function marked(text, other) {
  const others = new Set(other.split(/\s+/).map(bare));
  const pieces = text.split(/(\s+)/);
  const differs = pieces.map((piece, k) => k % 2 === 0 && piece !== "" && !others.has(bare(piece)));
  const n = (pieces.length + 1) / 2;
  const common = n - differs.filter(Boolean).length;
  if (Math.min(n, others.size) >= MANY_WORDS && common < LEAST_COMMON * Math.min(n, others.size)) return [text];
  return pieces.map((piece, k) => (differs[k] ? make("mark", {}, piece) : piece));
}

// ---- things

export const fieldsOf = (thing) => thing.parts.find((part) => part.kind === "fields")?.fields ?? [];
const textOf = (thing) => thing.parts.find((part) => part.kind === "text")?.text ?? null;

export function inWords(thing) {
  const texts = thing.parts.map(
    (part) =>
      part.text ??
      part.fields?.map(([name, value]) => `${name} ${value}`).join(", ") ??
      part.name ??
      part.href ??
      t("picture", { name: thing.id }),
  );
  return texts.join("; ").slice(0, 300);
}

// A button that shows a picture in a window.
function zoomView(part, label, ...face) {
  const name = part.name ?? label;
  const image = { class: part.pixels ? "large pixels" : "large", src: part.src, alt: t("picture", { name }) };
  const large = (event) => openDialog(event.currentTarget, t("picture", { name }), make("img", image));
  const kind = face.length ? "zoom" : "menu";
  const attributes = { type: "button", class: kind, "aria-label": t("enlarge", { name }), onclick: large };
  return make("button", attributes, ...(face.length ? face : ["⤢"]));
}

function pictureView(part, label, still) {
  const name = part.name ?? label;
  const image = make("img", {
    class: part.pixels ? "picture pixels" : "picture",
    src: part.src,
    alt: t("picture", { name }),
  });
  const shown = still ? image : zoomView(part, label, image);
  image.addEventListener("error", () =>
    shown.replaceWith(make("p", { class: "soft" }, t("no_picture", { name: part.name ?? "" }))),
  );
  return shown;
}

// A picture, a sound, a link or a text; `other` is the text that it is compared with; one that is still is part of a button.
export function partView(part, label, { other = null, still = false } = {}) {
  if (part.kind === "image") return pictureView(part, label, still);
  if (part.kind === "audio")
    return make("audio", {
      controls: true,
      preload: "none",
      src: part.src,
      "aria-label": t("sound", { name: part.name ?? label }),
      onplay: playAlone,
    });
  if (part.kind === "link") {
    const safe = /^https?:\/\//i.test(part.href);
    return make(
      "p",
      {},
      safe ? make("a", { href: part.href, target: "_blank", rel: "noopener noreferrer" }, part.href) : part.href,
    );
  }
  const text = other === null ? [part.text] : marked(part.text, other);
  return still
    ? make("p", { class: "text" }, ...text)
    : make("p", { class: "text", tabindex: "0", role: "group", "aria-label": t("text", { name: label }) }, ...text);
}

function playAlone(event) {
  for (const one of document.querySelectorAll("audio")) if (one !== event.target) one.pause();
}

export function partsView(thing, options = {}) {
  const parts = thing.parts.filter((part) => part.kind !== "fields");
  const pictures = parts.filter((part) => part.kind === "image");
  const rest = parts.filter((part) => part.kind !== "image").map((part) => partView(part, thing.id, options));
  const shown = pictures.map((part) => partView(part, thing.id, options));
  return shown.length > 1 ? [make("div", { class: "pictures" }, ...shown), ...rest] : [...shown, ...rest];
}

function sideView(thing, label, other) {
  return make(
    "article",
    { "aria-label": label },
    make("h2", {}, `${label}: ${thing.id}`),
    ...partsView(thing, { other }),
  );
}

// How far two numbers are apart, in standard deviations of their column.
function apartView(first, second) {
  if (first[2] === null || second[2] === null || first[1] === "" || second[1] === "" || first[1] === second[1])
    return null;
  const apart = Math.abs(first[2] - second[2]);
  return make(
    "div",
    { class: "apart" },
    bar(apart / WIDEST, t("apart", { apart: number(apart, 1) })),
    make("span", { "aria-hidden": "true" }, number(apart, 1)),
  );
}

const cells = (tag, texts, attributes = {}) => texts.map((text) => make(tag, attributes, ...[text].flat()));

function fieldsTable(head, rows, label) {
  const table = make(
    "table",
    { class: "fields" },
    make("thead", {}, make("tr", {}, ...cells("th", head, { scope: "col" }))),
    make("tbody", {}, ...rows),
  );
  return make("div", { class: "fields-box", tabindex: "0", role: "group", "aria-label": label }, table);
}

function pairFields(left, right) {
  const others = fieldsOf(right);
  const rows = fieldsOf(left).map((first, k) => {
    const second = others[k];
    const apart = apartView(first, second);
    const values = apart ? [first[1], second[1]] : [marked(first[1], second[1]), marked(second[1], first[1])];
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, first[0]),
      ...cells("td", values),
      make("td", { class: "difference" }, first[1] === second[1] ? "=" : apart),
    );
  });
  const head = [t("field"), t("first_id", { id: left.id }), t("second_id", { id: right.id }), t("difference")];
  return rows.length ? fieldsTable(head, rows, t("fields_of_both")) : null;
}

// ---- a pair

function pairView({ left, right }) {
  const hasSides = [left, right].some((thing) => thing.parts.some((part) => part.kind !== "fields"));
  const sides = hasSides
    ? make(
        "div",
        { class: "sides flash" },
        sideView(left, t("first"), textOf(right)),
        sideView(right, t("second"), textOf(left)),
      )
    : null;
  return [sides, pairFields(left, right)].filter(Boolean);
}

// ---- a thing and one example of each class

const keyOf = (place) => (place < 10 ? String((place + 1) % 10) : null);
// By its name, or by its number: classes are numbered in the order in which they were found.
export const classLabel = ({ name, place }) => name || t("class_n", { n: place + 1 });

function fieldList(thing, other) {
  const others = other ? fieldsOf(other) : [];
  return make(
    "dl",
    {},
    ...fieldsOf(thing).flatMap((field, k) => [
      make("dt", {}, field[0]),
      make("dd", {}, field[1], other ? apartView(others[k], field) : null),
    ]),
  );
}

function choiceView(choice, left, place, { pick, menu }) {
  const key = keyOf(choice.key);
  const few = fieldsOf(choice).length <= MOST_IN_CARD;
  return make(
    "article",
    { class: "choice", "aria-label": classLabel(choice) },
    make(
      "div",
      { class: "choice-head" },
      make(
        "button",
        { type: "button", class: "pick", "aria-keyshortcuts": key, onclick: () => pick(place) },
        key === null ? null : make("kbd", {}, key),
        make("span", {}, classLabel(choice)),
      ),
      menu
        ? make(
            "button",
            {
              type: "button",
              class: "menu",
              "aria-label": t("class_menu", { name: classLabel(choice) }),
              onclick: (event) => menu(place, event.currentTarget),
            },
            "⋯",
          )
        : null,
    ),
    make("p", { class: "soft id" }, choice.id),
    ...partsView(choice, { still: true }),
    few && fieldsOf(choice).length ? fieldList(choice, left) : null,
  );
}

// All fields of some items, where they are too many for a card; those after the first are compared with it.
function manyFields(items, heads, isCompared = true) {
  if (fieldsOf(items[0]).length <= MOST_IN_CARD) return null;
  const rows = fieldsOf(items[0]).map((field, k) => {
    const values = items.map((item) => fieldsOf(item)[k]);
    const shown = values.map((value, j) => [value[1], isCompared && j ? apartView(field, value) : ""].filter(Boolean));
    return make("tr", {}, make("th", { scope: "row" }, field[0]), ...cells("td", shown));
  });
  return fieldsTable([t("field"), ...heads], rows, t("fields_of_all"));
}

// A class has a place and a key, which others do not take where it is not among the choices.
const headOf = (choice) => `${keyOf(choice.key) ?? ""} ${classLabel(choice)}`;

// The choices that a search finds are the question's `shown`: keys go by what is before one's eyes.
function matchView(question, actions) {
  const { left, choices } = question;
  const pictures = left.parts.every((part) => part.kind === "image");
  const grid = make("div", {
    class: pictures ? "choices" : "choices wide",
    role: "group",
    "aria-label": t("classes_so_far"),
  });
  const table = make("div", {});
  const found = make("p", { class: "soft", role: "status" });
  const fill = (wanted) => {
    const places = [...choices.keys()].filter((k) =>
      `${classLabel(choices[k])} ${choices[k].id} ${inWords(choices[k])}`
        .toLowerCase()
        .includes(wanted.trim().toLowerCase()),
    );
    question.shown = places.slice(0, FIRST_VIEW);
    const shown = question.shown.map((place) => choices[place]);
    const views = question.shown.map((place) => choiceView(choices[place], left, place, actions));
    if (!wanted && choices.at(-1).key < FIRST_VIEW)
      // A gap where a class is that it cannot be.
      for (const [k, { key }] of shown.entries())
        for (let gap = k ? shown[k - 1].key + 1 : 0; gap < key; gap++)
          views.splice(gap, 0, make("div", { class: "gap", "aria-hidden": "true" }));
    grid.replaceChildren(...views);
    table.replaceChildren(...[manyFields([left, ...shown], [t("this_one"), ...shown.map(headOf)])].filter(Boolean));
    found.textContent = t("classes_shown", { n: question.shown.length, all: choices.length });
  };
  fill("");
  const search = make("input", {
    type: "search",
    class: "search",
    "aria-label": t("search"),
    placeholder: t("search"),
    oninput: (event) => fill(event.target.value),
    onkeydown: (event) => event.key === "Enter" && question.shown.length === 1 && actions.pick(question.shown[0]),
  });
  const few = fieldsOf(left).length <= MOST_IN_CARD;
  const thing = make(
    "article",
    { class: "new", "aria-label": t("this_one") },
    make("h2", {}, `${t("this_one")}: ${left.id}`),
    ...partsView(left),
    few && fieldsOf(left).length ? fieldList(left) : null,
  );
  const bare = left.parts.every((part) => part.kind === "fields") && !few;
  return [
    make(
      "div",
      { class: `match ${question.form} flash${bare ? " bare" : ""}` },
      thing,
      make(
        "div",
        {},
        ...(choices.length > FIRST_VIEW ? [make("div", { class: "searching" }, search, found)] : []),
        grid,
      ),
    ),
    table,
  ];
}

// ---- items to put into groups

// Cards keep their places, so that nothing moves while one reads; the boxes below them say which are together.
function sortView(question) {
  const { items } = question;
  const n = items.length;
  question.groups ??= items.map(() => null);
  Object.assign(question, { steps: [], marked: 0 });
  const label = (k) => itemLabel(items[k]);
  const members = (group) => [...items.keys()].filter((k) => question.groups[k] === group);
  const cards = items.map((item, k) => sortCard(item, () => mark(k)));
  const boxes = [...Array.from({ length: n }, (_, k) => k + 1), null].map((group) =>
    make("button", { type: "button", class: "group", "data-group": group, onclick: () => place(group) }),
  );
  const words = make("p", { class: "visually-hidden", role: "status" });
  const nameOfGroup = (group) => (group === null ? t("not_placed") : t("group_n", { n: group }));
  const draw = () => {
    for (const [k, { card, pick, badge }] of cards.entries()) {
      const group = question.groups[k];
      if (group === null) delete card.dataset.group;
      else card.dataset.group = group;
      badge.textContent = group ?? "";
      card.classList.toggle("marked", k === question.marked);
      pick.setAttribute("aria-pressed", k === question.marked);
      pick.setAttribute("aria-label", `${label(k)}, ${nameOfGroup(group)}`);
    }
    for (const [k, box] of boxes.entries()) {
      const group = k < n ? k + 1 : null;
      const inside = members(group);
      box.setAttribute("aria-keyshortcuts", group ?? 0);
      box.setAttribute("aria-label", [nameOfGroup(group), inside.map(label).join(", ")].filter(Boolean).join(": "));
      box.replaceChildren(
        make("span", { class: group === null ? null : "badge" }, group === null ? t("not_placed") : String(group)),
        ...inside.map((k) => memberView(items[k], label(k))),
      );
    }
  };
  const tell = () => {
    const groups = [...new Set(question.groups)].sort((a, b) => (a ?? n + 1) - (b ?? n + 1));
    words.textContent = groups.map((one) => `${nameOfGroup(one)}: ${members(one).map(label).join(", ")}.`).join(" ");
  };
  const change = (groups) => {
    question.steps.push(question.groups);
    question.groups = groups;
    draw();
    tell();
  };
  const mark = (k) => {
    question.marked = k;
    draw();
  };
  const place = (group, k = question.marked) => change(question.groups.map((own, j) => (j === k ? group : own)));
  // On a box, or on a card: into its group, or both into one that is free.
  const drop = (k, target) => {
    const other = cards.findIndex(({ card }) => card === target);
    if (other < 0) place(Number(target.dataset.group) || null, k);
    else {
      const free = boxes.findIndex((_, group) => !question.groups.includes(group + 1)) + 1;
      const group = question.groups[other] ?? free;
      change(question.groups.map((own, j) => (j === k || j === other ? group : own)));
    }
  };
  for (const [k, { card }] of cards.entries())
    draggable(card, (target) => {
      mark(k);
      drop(k, target);
    });
  question.back = () => {
    if (!question.steps.length) return false;
    question.groups = question.steps.pop();
    draw();
    tell();
    return true;
  };
  question.keyed = (event) => {
    const key = event.key.toLowerCase();
    const button = event.target instanceof Element && event.target.closest("button, a, summary");
    if (key === "u") return "unsure";
    // Enter on another button is for that button.
    if (key === "enter") return !button || button.matches(".pick") ? "done" : null;
    if (key in STEPS) {
      mark((question.marked + STEPS[key] + n) % n);
      cards[question.marked].pick.focus();
    } else if (key === "0" || key === "backspace") place(null);
    else if (Number(key) >= 1 && Number(key) <= n) place(Number(key));
    else return null;
    return USED;
  };
  draw();
  const pictures = items.every((item) => item.parts.every((part) => part.kind === "image"));
  return [
    make("p", { class: "soft hint" }, t("sort_hint"), " ", make("span", { class: "by-key" }, t("sort_keys", { n }))),
    make("div", { class: pictures ? "sort pictures-only flash" : "sort flash" }, ...cards.map(({ card }) => card)),
    manyFields(
      items,
      items.map((_, k) => label(k)),
      false,
    ),
    make("div", { class: "groups", role: "group", "aria-label": t("groups") }, ...boxes),
    words,
  ].filter(Boolean);
}

// An example by its class, others by their ids.
export const itemLabel = (item) => (isExample(item) ? classLabel(item) : item.id);
const isExample = ({ name, place }) => Boolean(name) || (place ?? null) !== null;

function sortCard(item, mark) {
  const pick = make(
    "button",
    { type: "button", class: "pick", onfocus: mark },
    make("span", { class: isExample(item) ? "named" : "soft" }, itemLabel(item)),
  );
  const badge = make("span", { class: "badge" });
  const [picture] = item.parts.filter((part) => part.kind === "image");
  const few = fieldsOf(item).length <= MOST_IN_CARD;
  const card = make(
    "article",
    { class: "sortable", onclick: (event) => event.target.closest("button, a, audio") || pick.focus() },
    make("div", { class: "choice-head" }, pick, badge, picture ? zoomView(picture, item.id) : null),
    ...item.parts
      .filter((part) => part.kind !== "fields")
      .map((part) => partView(part, item.id, { still: part.kind === "image" })),
    few && fieldsOf(item).length ? fieldList(item) : null,
  );
  return { card, pick, badge };
}

const memberView = (item, label) => {
  const [picture] = item.parts.filter((part) => part.kind === "image");
  return picture
    ? make("img", { class: picture.pixels ? "member pixels" : "member", src: picture.src, alt: "" })
    : make("span", { class: "member" }, label);
};

// By mouse, pen or finger; other parts of a card than its head scroll under a finger unless they are pictures.
function draggable(card, drop) {
  card.addEventListener("dragstart", (event) => event.preventDefault());
  card.addEventListener("pointerdown", (down) => {
    if (down.button || !down.isPrimary || down.target.closest("button:not(.pick), a, audio")) return;
    let over = null;
    let moves = false;
    const follow = (event) => {
      if (event.pointerId !== down.pointerId) return;
      const [x, y] = [event.clientX - down.clientX, event.clientY - down.clientY];
      if (!moves && Math.hypot(x, y) < DRAG_PX) return;
      if (!moves) card.setPointerCapture(down.pointerId);
      moves = true;
      card.classList.add("dragged");
      card.style.transform = `translate(${x}px, ${y}px)`;
      over?.classList.remove("over");
      over = card.getRootNode().elementFromPoint(event.clientX, event.clientY)?.closest(".group, .sortable");
      over?.classList.add("over");
    };
    const end = (event) => {
      if (event.pointerId !== down.pointerId) return;
      for (const [name, listener] of Object.entries(listeners)) window.removeEventListener(name, listener);
      card.classList.remove("dragged");
      card.style.transform = "";
      over?.classList.remove("over");
      if (event.type === "pointerup" && over && over !== card) drop(over);
    };
    const listeners = { pointermove: follow, pointerup: end, pointercancel: end };
    // A quick pointer has left the card before its first move is heard of.
    for (const [name, listener] of Object.entries(listeners)) window.addEventListener(name, listener);
  });
}

// ---- answers

// The items of a question as its form names them; a class keeps its place and its key, also where others are left out.
export function named(question) {
  const [left, ...others] = question.items;
  if (question.form === "pair") return { ...question, left, right: others[0] };
  const choices = others.map((choice, k) => ({ ...choice, place: choice.place ?? k }));
  return {
    ...question,
    left,
    choices: choices.map((one, k) => ({ ...one, key: question.form === "match" ? one.place : k })),
  };
}

const TITLES = { pair: "same_or_different", match: "which", sort: "sort_these", nearer: "nearer" };
export const titleOf = (question) => t(TITLES[question?.form ?? "pair"]);

export function questionView(question, actions) {
  if (question.form === "pair") return pairView(question);
  // Its two examples are all there is to choose from.
  return question.form === "sort"
    ? sortView(question)
    : matchView(question, question.form === "match" ? actions : { pick: actions.pick });
}

const UNSURE = ["unsure", "U"];
const WORDS = {
  pair: [["same", "S"], UNSURE, ["different", "D"]],
  match: [["none", "N"], UNSURE],
  sort: [["done", "Enter"], UNSURE],
  nearer: [UNSURE],
};

export function answerButtons(question, answer) {
  const arrows = { S: "S ArrowLeft", U: question.form === "sort" ? "U" : "U ArrowDown", D: "D ArrowRight" };
  return WORDS[question.form].map(([word, key]) =>
    make(
      "button",
      { type: "button", "data-answer": word, "aria-keyshortcuts": arrows[key] ?? key, onclick: () => answer(word) },
      t(word),
      " ",
      make("kbd", {}, key === "Enter" ? "↵" : key),
    ),
  );
}

// What is sent for a button or a key: of sorted items their groups; null if too few are in one.
export function replyOf(word, question) {
  if (word !== "done") return word;
  return question.groups.filter((group) => group !== null).length < 2 ? null : question.groups;
}

// What a key answers; null where it is no answer.
export function keyed(event, question) {
  if (question.form === "sort") return question.keyed(event);
  const key = event.key.toLowerCase();
  if (question.form === "pair") return KEYS[key] ?? null;
  const digit = /^\d$/.test(key) ? (Number(key) + 9) % 10 : null;
  const place = (question.shown ?? []).find((k) => question.choices[k].key === digit);
  return place ?? (question.form === "match" ? MATCH_KEYS : NEARER_KEYS)[key] ?? null;
}

// Whether a key is meant for what has the focus: a field to type in, or a text that it scrolls.
export function isTaken(event) {
  const target = event.target instanceof Element ? event.target : document.body;
  if (
    event.repeat ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    target.closest("input:not([type=checkbox]), select, textarea, audio, dialog")
  )
    return true;
  const scrolls = target.closest(".text, .fields-box");
  return /^Arrow(Up|Down)$/.test(event.key) && Boolean(scrolls) && scrolls.scrollHeight > scrolls.clientHeight;
}
