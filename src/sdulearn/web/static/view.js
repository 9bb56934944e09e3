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

function pictureView(part, label, still) {
  const name = part.name ?? label;
  const image = make("img", {
    class: part.pixels ? "picture pixels" : "picture",
    src: part.src,
    alt: t("picture", { name }),
  });
  const large = () =>
    openDialog(
      shown,
      t("picture", { name }),
      make("img", { class: part.pixels ? "large pixels" : "large", src: part.src, alt: t("picture", { name }) }),
    );
  const shown = still
    ? image
    : make("button", { type: "button", class: "zoom", "aria-label": t("enlarge", { name }), onclick: large }, image);
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
export const nameOf = (choice) => choice.name || t("like", { id: choice.id });

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

function choiceView(choice, key, left, place, { pick, menu }) {
  const few = fieldsOf(choice).length <= MOST_IN_CARD;
  return make(
    "article",
    { class: "choice", "aria-label": nameOf(choice) },
    make(
      "div",
      { class: "choice-head" },
      make(
        "button",
        { type: "button", class: "pick", "aria-keyshortcuts": key, onclick: () => pick(place) },
        key === null ? null : make("kbd", {}, key),
        make("span", { class: choice.name ? null : "soft" }, choice.name || choice.id),
      ),
      menu
        ? make(
            "button",
            {
              type: "button",
              class: "menu",
              "aria-label": t("class_menu", { name: nameOf(choice) }),
              onclick: (event) => menu(place, event.currentTarget),
            },
            "⋯",
          )
        : null,
    ),
    ...partsView(choice, { still: true }),
    few && fieldsOf(choice).length ? fieldList(choice, left) : null,
  );
}

function matchFields(left, shown) {
  if (fieldsOf(left).length <= MOST_IN_CARD) return null;
  const rows = fieldsOf(left).map((field, k) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, field[0]),
      make("td", {}, field[1]),
      ...shown.map((choice) => make("td", {}, fieldsOf(choice)[k][1], apartView(field, fieldsOf(choice)[k]))),
    ),
  );
  return fieldsTable(
    [t("field"), t("this_one"), ...shown.map((choice, k) => `${keyOf(k) ?? ""} ${choice.name || choice.id}`)],
    rows,
    t("fields_of_all"),
  );
}

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
      `${choices[k].name} ${choices[k].id} ${inWords(choices[k])}`.toLowerCase().includes(wanted.trim().toLowerCase()),
    );
    question.shown = places.slice(0, FIRST_VIEW);
    grid.replaceChildren(
      ...question.shown.map((place, k) => choiceView(choices[place], keyOf(k), left, place, actions)),
    );
    table.replaceChildren(
      ...[
        matchFields(
          left,
          question.shown.map((place) => choices[place]),
        ),
      ].filter(Boolean),
    );
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
      { class: bare ? "match bare flash" : "match flash" },
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

// ---- answers

// The items of a question as its form names them.
export function named(question) {
  const [left, ...choices] = question.items;
  return question.form === "match" ? { ...question, left, choices } : { ...question, left, right: choices[0] };
}

export const isMatch = (question) => question.form === "match";

export const questionView = (question, actions) =>
  isMatch(question) ? matchView(question, actions) : pairView(question);

export function answerButtons(question, answer) {
  const words = isMatch(question)
    ? [
        ["none", "N"],
        ["unsure", "U"],
      ]
    : [
        ["same", "S"],
        ["unsure", "U"],
        ["different", "D"],
      ];
  const arrows = { S: "S ArrowLeft", U: "U ArrowDown", D: "D ArrowRight", N: "N" };
  return words.map(([word, key]) =>
    make(
      "button",
      { type: "button", "data-answer": word, "aria-keyshortcuts": arrows[key], onclick: () => answer(word) },
      t(word),
      " ",
      make("kbd", {}, key),
    ),
  );
}

// What a key answers; null where it is no answer.
export function keyed(event, question) {
  const key = event.key.toLowerCase();
  if (!isMatch(question)) return KEYS[key] ?? null;
  const place = /^\d$/.test(key) ? (question.shown ?? [])[(Number(key) + 9) % 10] : null;
  return place ?? MATCH_KEYS[key] ?? null;
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
  return event.key === "ArrowDown" && Boolean(scrolls) && scrolls.scrollHeight > scrolls.clientHeight;
}
