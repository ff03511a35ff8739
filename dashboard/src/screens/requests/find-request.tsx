import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { Field } from "../../components/field.tsx";

/** Opens a request by its id, or by the id of its response. Refused requests are found too. */
export function FindRequest() {
  const navigate = useNavigate();
  const [id, setId] = useState("");
  return (
    <form
      className="flex w-full items-end gap-3 sm:w-md"
      onSubmit={(event) => {
        event.preventDefault();
        if (id.trim()) void navigate({ to: "/requests/$id", params: { id: id.trim() } });
      }}
    >
      <Field
        className="flex-1"
        label="Find by id"
        placeholder="req_… or chatcmpl-…"
        maxLength={256}
        value={id}
        onChange={({ target }) => setId(target.value)}
      />
      <Button type="submit">Find</Button>
    </form>
  );
}
