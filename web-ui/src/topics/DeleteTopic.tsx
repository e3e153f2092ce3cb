import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { answered, api } from "../api/client";
import { TypedConfirmation } from "../parts/TypedConfirmation";

export function DeleteTopic({ topic, onClose }: { topic: string; onClose: () => void }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const deleting = useMutation({
    mutationFn: () => answered(api.DELETE("/api/v1/topics/{topic}", { params: { path: { topic } } })),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["topics"] });
      onClose();
      await navigate({ to: "/topics" });
    },
  });
  return (
    <TypedConfirmation
      title="Delete topic"
      name={topic}
      action="Delete topic"
      failure="The topic was not deleted"
      error={deleting.error}
      isPending={deleting.isPending}
      onConfirm={() => deleting.mutate()}
      onClose={onClose}
    >
      All records of <strong>{topic}</strong> are deleted with it. This cannot be undone.
    </TypedConfirmation>
  );
}
