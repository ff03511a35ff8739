import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type ComponentType, useEffect } from "react";
import { type Model, modelsQuery } from "../../api/models.ts";
import { useAccountSession } from "../../api/session.ts";
import { EmptyState } from "../../components/empty-state.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Select } from "../../components/select.tsx";
import { kept } from "../../lib/kept.ts";
import { Chat } from "./chat.tsx";
import { Embeddings } from "./embeddings.tsx";
import { Generation } from "./generation.tsx";
import { Moderation } from "./moderation.tsx";
import { Rerank } from "./rerank.tsx";

const route = getRouteApi("/playground");
const screens: Readonly<Record<string, ComponentType<{ readonly model: Model }>>> = {
  "/v1/chat/completions": Chat,
  "/v1/images/generations": Generation,
  "/v1/media/generations": Generation,
  "/v1/embeddings": Embeddings,
  "/v1/rerank": Rerank,
  "/v1/moderations": Moderation,
};

export function Playground() {
  return (
    <Page title="Playground" intro="Real calls, paid from the balance like any other.">
      <QueryView query={useQuery(modelsQuery)}>
        {(models) => <Chosen models={models.filter(({ endpoint }) => endpoint in screens)} />}
      </QueryView>
    </Page>
  );
}

/** The model of the address, else the one of the last visit. */
function Chosen({ models }: { readonly models: readonly Model[] }) {
  const { account } = useAccountSession();
  const last = kept(`model/${account.id}`, "local/chat");
  const { model: wanted = last.get() } = route.useSearch();
  const navigate = route.useNavigate();
  const model = models.find(({ id }) => id === wanted) ?? models.find(({ id }) => id === "local/chat") ?? models[0];
  useEffect(() => {
    if (model) last.set(model.id);
  }, [last, model]);
  if (!model)
    return (
      <EmptyState title="No model can be called now">
        <p>The service has no worker that serves one. Try again in a minute.</p>
      </EmptyState>
    );
  const Screen = screens[model.endpoint] ?? Generation;
  return (
    <>
      <Select
        label="Model"
        className="max-w-md"
        value={model.id}
        options={models.map(({ id, type }) => ({ value: id, label: `${id} (${type})` }))}
        onChange={(id) => void navigate({ search: { model: id } })}
      />
      <Screen key={Screen === Chat ? undefined : model.id} model={model} />
    </>
  );
}
