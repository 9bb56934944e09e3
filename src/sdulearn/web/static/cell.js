// The question in a cell of a notebook: follows view.js in one script.
const NOT_ANSWERED = { z: "undo" };

function render({ model, el }) {
  const root = make("div", {
    class: "sdulearn cell",
    tabindex: "0",
    role: "group",
    "aria-label": t("same_or_different"),
    "data-lm-suppress-shortcuts": "true",
  });
  const title = make("h3", {});
  const things = make("div", {});
  const answers = make("div", { class: "answers" });
  const status = make("span", { class: "soft", role: "status" });
  const send = (reply) => model.send({ reply });
  const undo = make(
    "button",
    { type: "button", "aria-keyshortcuts": "Z", onclick: () => send("undo") },
    t("undo"),
    " ",
    make("kbd", {}, "Z"),
  );
  root.append(title, things, answers, make("div", { class: "more" }, undo, status));
  let question = null;

  const draw = () => {
    const shown = model.get("shown");
    const hadFocus = root.contains(document.activeElement);
    question = shown.question && named(shown.question);
    title.textContent = question ? t(isMatch(question) ? "which" : "same_or_different") : "";
    things.replaceChildren(...(question ? questionView(question, { pick: send }) : []));
    answers.replaceChildren(...(question ? answerButtons(question, send) : []));
    status.textContent = shown.status;
    // What had the focus may be gone.
    if (hadFocus && !root.contains(document.activeElement)) root.focus({ preventScroll: true });
  };

  root.addEventListener("keydown", (event) => {
    if (isTaken(event)) return;
    const said = (question ? keyed(event, question) : null) ?? NOT_ANSWERED[event.key.toLowerCase()];
    if (said === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    send(said);
  });
  model.on("change:shown", draw);
  draw();
  el.append(root);
}

export default { render };
