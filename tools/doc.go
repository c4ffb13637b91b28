// Package tools holds what a policy can call: the Tool interface, tools made of
// Go functions (New), the three expert tools of ToolOrchestra (Answer, Reason,
// Search), an exact calculator, and the Workspace that results are gathered in.
package tools
