import { useSession } from "../api/session.ts";

/** What lists of calls do not show. The description of the API has the exact list. */
export function ContentNote() {
  const { docs } = useSession().service;
  return (
    <>
      Prompts and answers are not part of it;{" "}
      <a className="text-accent underline" href={docs} target="_blank" rel="noreferrer">
        where they are stored, and for how long
      </a>
      .
    </>
  );
}
