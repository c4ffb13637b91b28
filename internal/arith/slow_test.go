package arith_test
import ("testing";"time";"strings";"github.com/toolorchestra/toolorchestra-go/internal/arith")
func TestSlow(t *testing.T){
 for _,s:=range []string{
  strings.Repeat("5000!+",1600)+"1", strings.Repeat("2^65000*3/7-",800)+"1", strings.Repeat("1/3^40000+",900)+"1",
  strings.Repeat("binomial(9999,4999)+",500)+"1", strings.Repeat("exp(sin(ln(2.1)))+",550)+"1", strings.Repeat("2^.1+",2000)+"1",
  strings.Repeat("3^40000%7^20000+",600)+"1", "lcm("+strings.Repeat("3^40000,5^20000,",600)+"1)", "sum("+strings.Repeat("1/3^20000,1/5^9000,",600)+"1)",
  strings.Repeat("cbrt(7^200)+",800)+"1",strings.Repeat("1e16384+",1200)+"1", strings.Repeat("log(7^20000,3)+",680)+"1",
  strings.Repeat("6",10000)+"/"+strings.Repeat("7",200), strings.Repeat("sqrt(7^20000)+",700)+"1", strings.Repeat("1e-16000+",1100)+"1", strings.Repeat("round(1/7,1000)+",600)+"1",
  strings.Repeat("π+",3000)+"1",strings.Repeat("log(2^60000,2)+",600)+"1",
 }{
  st:=time.Now(); v,err:=arith.Eval(s); d:=time.Since(st); st=time.Now(); n:=len(v.String())
  t.Logf("%.30s %v %v text %v %d",s,d,err,time.Since(st),n)
 }
}
