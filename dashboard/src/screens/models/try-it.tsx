import { Link } from "@tanstack/react-router";
import type { Model } from "../../api/models.ts";
import { buttonClass } from "../../components/button.tsx";

/** A link to the playground with the model chosen. */
export const TryIt = ({ model: { id, name }, small = false }: { readonly model: Model; readonly small?: boolean }) => (
  <Link
    to="/playground"
    search={{ model: id }}
    className={buttonClass(small ? "secondary" : "primary", small)}
    aria-label={`Try it: ${name}`}
  >
    Try it
  </Link>
);
