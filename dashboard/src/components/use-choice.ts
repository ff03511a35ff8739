import { useNavigate, useSearch } from "@tanstack/react-router";

/** A choice that the parameter `name` of the address keeps, unless it is the usual one. The route must accept the parameter. */
export function useChoice<Value extends string>(
  name: string,
  options: readonly { readonly value: Value }[],
  usual: Value,
): readonly [value: Value, choose: (value: Value) => void] {
  const search: Readonly<Record<string, unknown>> = useSearch({ strict: false });
  const navigate = useNavigate();
  const value = options.find((option) => option.value === search[name])?.value ?? usual;
  const choose = (chosen: Value) =>
    void navigate({
      to: ".",
      replace: true,
      search: (before) => ({ ...before, [name]: chosen === usual ? undefined : chosen }),
    });
  return [value, choose];
}
