/* The site opened as files: browsers refuse workers there, so the search runs in a hidden frame instead. */
if (location.protocol === "file:") {
  const Worker = window.Worker;
  window.Worker = class extends EventTarget {
    constructor(script) {
      if (String(script).startsWith("blob:")) return new Worker(script); // these are allowed
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = new Promise((resolve, reject) => {
        const tag = this.inside.document.createElement("script");
        Object.assign(tag, { src: script, onload: resolve, onerror: reject });
        this.inside.document.head.append(tag);
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
