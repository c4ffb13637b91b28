package models_test

import (
	"context"
	"testing"

	"github.com/toolorchestra/toolorchestra-go/cost"
	"github.com/toolorchestra/toolorchestra-go/models"
	"github.com/toolorchestra/toolorchestra-go/models/modeltest"
)

// withBudget gives a metered model the meter that a run would.
type withBudget struct{ models.Model }

func (m withBudget) Generate(ctx context.Context, r *models.Request) (*models.Response, error) {
	meter, err := cost.NewMeter("test", cost.Budget{USD: cost.NoLimit()})
	if err != nil {
		return nil, err
	}
	return m.Model.Generate(cost.NewContext(ctx, meter), r)
}

func TestWrappersConform(t *testing.T) {
	leaf := func() models.Model { return modeltest.New(info, modeltest.Forever(modeltest.Say("a whole sentence"))) }
	t.Run("retry", func(t *testing.T) {
		modeltest.Conform(t, func(*testing.T) models.Model { return models.Retry(leaf(), models.RetryPolicy{}) })
	})
	t.Run("fallback", func(t *testing.T) {
		modeltest.Conform(t, func(*testing.T) models.Model { return models.Fallback(leaf(), leaf()) })
	})
	t.Run("metered", func(t *testing.T) {
		modeltest.Conform(t, func(*testing.T) models.Model {
			return withBudget{models.Metered(models.Retry(leaf(), models.RetryPolicy{}))}
		})
	})
}
