// Values that are asked for again and again while the page is visible.

import { useEffect, useRef, useState } from "./preact.js";

export function usePolled(load, seconds, failed, again = null) {
  const [value, setValue] = useState(null);
  const [problem, setProblem] = useState("");
  const newest = useRef(load);
  newest.current = load;
  useEffect(() => {
    let timer = null;
    let isOver = false;
    const run = async () => {
      if (!document.hidden) {
        try {
          const found = await newest.current();
          if (isOver) return;
          setValue(found);
          setProblem("");
        } catch (error) {
          if (isOver) return;
          setProblem(failed(error));
        }
      }
      timer = setTimeout(run, seconds * 1000);
    };
    const shown = () => {
      if (!document.hidden) {
        clearTimeout(timer);
        run();
      }
    };
    document.addEventListener("visibilitychange", shown);
    run();
    return () => {
      isOver = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [again]);
  return [value, problem];
}
