import { useSession } from "../api/session.ts";

/** Says that lists of calls have no content. The description of the API says where it is stored. */
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
